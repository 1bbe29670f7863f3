// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <exception>
#include <vector>

#include <rehearse/exec/time.h>
#include <rehearse_internal/exec/clock.h>

#include "comm/work/rank_work.h"

namespace rehearse::comm {

// Why a collective that not all ranks have reached is over for all of them: the time of some was over, or rank 0 has
// given up a monitored barrier.
class CollectiveFailure {
 public:
  void clear() noexcept;

  void note_timed_out(const RankWork& work, VirtualTime now);
  void note_given_up() noexcept { given_up_ = true; }

  // Can it no longer complete?
  bool any() const noexcept { return given_up_ || !timed_out_.empty(); }

  // Once it cannot: what a rank meets that waits for it, or comes later.
  std::exception_ptr error_of(const RankWork& work, const exec::Clock& clock) const;

 private:
  bool given_up_ = false;       // a monitored barrier, by rank 0
  std::vector<int> timed_out_;  // ranks (of the world), in the order in which their time was over
  VirtualTime since_{};         // the time of the first of them
};

}  // namespace rehearse::comm
