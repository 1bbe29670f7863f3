// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include <rehearse_internal/checks/rank_remarks.h>

#include "call_watch.h"

namespace rehearse::sim {

// Finds ranks that step optimizers although nothing carries their gradients, or what they have learnt, to other ranks:
// no call of theirs has more than two numbers, such as a loss, and all calls between two steps have fewer numbers than
// the parameters. Looks at sizes alone, because a program may copy gradients into a buffer, compress them or average
// parameters instead.
class LoneTraining final : public CallChecker {
 public:
  explicit LoneTraining(int ranks) : ranks_(static_cast<std::size_t>(ranks)) {}

  void begin(WatchedCall& call, const std::vector<SharedBytes>& shared) override;
  // The calling rank steps an optimizer that has `parameters` elements with gradients.
  static void note_step(std::int64_t parameters);

  // Call this after the run. At least two ranks must have trained alone: one rank may train for the others.
  void leave_to(checks::RankRemarks& remarks) const;

 private:
  void step(int rank, std::int64_t parameters);

  struct OfRank {
    std::uint64_t steps = 0;
    std::int64_t parameters = 0;  // of the largest step
    // Elements of each call's largest tensor since the last step.
    std::int64_t largest_since = 0, sum_since = 0;
    // The same between any two steps.
    std::int64_t largest = 0, sum = 0;

    void settle();
  };

  static bool is_lone(OfRank rank);

  std::vector<OfRank> ranks_;
};

}  // namespace rehearse::sim
