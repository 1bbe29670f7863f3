// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <exception>
#include <vector>

#include <rehearse/exec/time.h>
#include <rehearse_internal/exec/clock.h>

#include "comm/work/rank_work.h"

namespace rehearse::comm {

// The reason why a collective has failed for all ranks. The calls of some ranks may have reached their time limits, or
// may have failed together with an earlier collective: note_timed_out(). Or rank 0 gave up a monitored barrier:
// note_given_up().
class CollectiveFailure {
 public:
  void clear() noexcept;

  void note_timed_out(const RankWork& work, VirtualTime now);
  void note_given_up() noexcept { given_up_ = true; }

  // Whether the collective can no longer complete.
  bool any() const noexcept { return given_up_ || !timed_out_.empty(); }

  // The error for a rank that waits for the collective or arrives later. Call it only if any().
  std::exception_ptr error_of(const RankWork& work, const exec::Clock& clock) const;

 private:
  bool given_up_ = false;       // rank 0 gave up a monitored barrier
  std::vector<int> timed_out_;  // ranks of the world, in the order of note_timed_out()
  VirtualTime since_{};         // when the first of them was noted
};

}  // namespace rehearse::comm
