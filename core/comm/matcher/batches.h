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

// The coalesced sends and receives of ranks, until the fabric gets them. Used only with
// CommunicatorOptions::coalesced_as_one: then the sends and receives that a rank coalesces form one unit, a batch.
// Buffered sends belong to no batch. A pair of a send and its receive is launched when all calls are matched in its two
// batches, in the batches of their peers, and so on.
class Batches {
 public:
  bool empty() const noexcept { return batches_.empty(); }

  // Makes one batch of sends and receives of one rank. Call it before they join the matcher.
  void add(Works works);

  // A send and its receive are matched. Returns the pairs that can be launched now: this pair and the pairs held with
  // it, or none.
  std::vector<MatchedPair*> add(MatchedPair& pair);

  // The pair has failed, so the other calls of its batches are never launched.
  void fail(const MatchedPair& pair);

  // The works that keep this matched pair waiting. `own`: one of the pair's works. Empty if the pair does not wait, or
  // if the batch of `own` is itself incomplete.
  Works unmatched_elsewhere(const MatchedPair& pair, const RankWork& own) const;

  void clear() noexcept;

 private:
  struct Batch {
    Works works;
    std::size_t unmatched;
    std::vector<MatchedPair*> pairs;  // the pairs of the works whose peers have arrived
  };

  Batch* find(const RankWork* work) const;
  std::vector<Batch*> around(const MatchedPair& pair) const;

  std::vector<std::unique_ptr<Batch>> batches_;
  std::unordered_map<const RankWork*, Batch*> batch_of_;  // looked up; never iterated; the batch keeps the work alive
};

}  // namespace rehearse::comm
