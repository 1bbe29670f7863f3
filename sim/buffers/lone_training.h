// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include <rehearse_internal/checks/rank_remarks.h>

#include "call_watch.h"

namespace rehearse::sim {

// Finds ranks that step optimizers although nothing carries their gradients, or what they have learnt, to other ranks:
// after a step, no calls of theirs have more than two numbers, such as a loss. Looks at sizes alone, because a
// program may copy gradients into a buffer, compress them or average parameters instead.
class LoneTraining final : public CallChecker {
 public:
  explicit LoneTraining(int ranks) : ranks_(static_cast<std::size_t>(ranks)) {}

  void begin(WatchedCall& call, const std::vector<SharedBytes>& shared) override;
  // The rank steps an optimizer that has `parameters` elements with gradients.
  void step(int rank, std::int64_t parameters);

  // Call this after the run. At least two ranks must have trained alone: one rank may train for the others.
  void leave_to(checks::RankRemarks& remarks) const;

 private:
  struct OfRank {
    std::uint64_t steps = 0;
    std::int64_t parameters = 0;  // of the largest step
    std::int64_t since_step = 0;  // elements of each call's largest tensor since the last step, in total
    std::int64_t most = 0;        // the same between any two steps
  };

  static bool is_lone(const OfRank& rank);

  std::vector<OfRank> ranks_;
};

}  // namespace rehearse::sim
