// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "comm/work/rank_work.h"

namespace rehearse::comm {

class MatchedPair;

// The sends and receives that ranks have coalesced, where those of a rank are one unit
// (CommunicatorOptions::coalesced_as_one), until they move. A pair moves when all of its two units has met, and all of
// the units that these meet, and so on.
class Batches {
 public:
  bool empty() const noexcept { return batches_.empty(); }

  // Sends and receives of one rank, before they join the others'.
  void add(Works works);

  // A send and its receive have met. The pairs that move now: this one and what was held with it, or none.
  std::vector<MatchedPair*> meet(MatchedPair& pair);

  // The pair has failed: what is in a unit with it never moves.
  void fail(const MatchedPair& pair);

  // The works that keep this matched pair waiting. Empty if it does not wait, or if its own batch is incomplete.
  Works unmatched_elsewhere(const MatchedPair& pair, const RankWork& own) const;

  void clear() noexcept;

 private:
  struct Batch {
    Works works;
    std::size_t unmatched;
    std::vector<MatchedPair*> pairs;  // of those that have met
  };

  Batch* find(const RankWork* work) const;
  std::vector<Batch*> around(const MatchedPair& pair) const;

  std::vector<std::unique_ptr<Batch>> batches_;
  std::unordered_map<const RankWork*, Batch*> batch_of_;  // looked up, never walked; the batch keeps the work alive
};

}  // namespace rehearse::comm
