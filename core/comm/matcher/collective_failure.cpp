// SPDX-License-Identifier: BSD-3-Clause
#include "collective_failure.h"

#include <chrono>

#include <fmt/format.h>

#include <rehearse/comm/errors.h>
#include <rehearse_internal/exec/check.h>
#include <rehearse_internal/exec/kind_of_time.h>
#include <rehearse_internal/formatting/rank_list.h>

#include "comm/agree/wording.h"

namespace rehearse::comm {
namespace {

double milliseconds(VirtualTime time) {
  return std::chrono::duration<double, std::milli>(time.time_since_epoch()).count();
}

CommError monitored_barrier_error(const RankWork& work) {
  return CommError(barrier_given_up_by_rank_0(work.rank()), work.group().name, work.getSequencenumber(),
                   {work.group().global_rank(0)});
}

}  // namespace

void CollectiveFailure::clear() noexcept {
  given_up_ = false;
  timed_out_.clear();
}

void CollectiveFailure::note_timed_out(const RankWork& work, VirtualTime now) {
  if (timed_out_.empty()) since_ = now;
  timed_out_.push_back(work.global_rank());
}

std::exception_ptr CollectiveFailure::error_of(const RankWork& work, const exec::Clock& clock) const {
  REHEARSE_CHECK(any(), work.rank(), work.getSequencenumber());
  if (given_up_) return std::make_exception_ptr(monitored_barrier_error(work));
  return std::make_exception_ptr(
      TimeoutError(fmt::format("{} is over: it timed out on {} at {} ms of {}", title_of(work),
                               describe_ranks(timed_out_), milliseconds(since_), exec::kind_of_time(clock)),
                   work.group().name, work.getSequencenumber(), timed_out_));
}

}  // namespace rehearse::comm
