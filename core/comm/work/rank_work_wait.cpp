// SPDX-License-Identifier: BSD-3-Clause
// How a rank waits for its work, and what it meets when the work has failed or takes too long.
#include <optional>
#include <utility>

#include <c10/util/ScopeExit.h>
#include <fmt/format.h>

#include <rehearse/comm/errors.h>
#include <rehearse_internal/exec/kind_of_time.h>
#include <rehearse_internal/exec/this_rank.h>
#include <rehearse_internal/formatting/rank_list.h>

#include "rank_work.h"
#include "work_observer.h"

namespace rehearse::comm {

bool RankWork::wait(std::chrono::milliseconds timeout) {
  exec::this_rank::begin_call();
  const bool whole = wait_as_part(timeout, WorkObserver(*this));
  exec::this_rank::end_call();
  return whole;
}

bool RankWork::wait_as_part(std::chrono::milliseconds timeout, const exec::Observer& waiting) {
  if (!wait_until(Until::launched, timeout, waiting)) return false;
  if (operation.end != nullptr) operation.end->order();
  return true;
}

void RankWork::wait_until_done() { wait_until(Until::done, kNoTimeout, WorkObserver(*this)); }

bool RankWork::wait_until(Until until, std::chrono::milliseconds timeout, const exec::Observer& waiting) {
  asked_ = true;
  if (!is_over(until) && !block(until, timeout, waiting)) return false;
  note_known();
  if (exception_ != nullptr) throw_failure();
  return true;
}

// False: abort() ended the wait.
bool RankWork::block(Until until, std::chrono::milliseconds timeout, const exec::Observer& waiting) {
  auto& executor = owner_->executor();
  std::optional<VirtualTime> limit;
  if (timeout.count() > 0) limit = executor.clock().now() + timeout;
  const auto no_longer = c10::make_scope_exit([this]() noexcept { waiting_ = nullptr; });
  waiting_ = &waiting;
  while (!is_over(until)) {
    if (std::exchange(wait_aborted_, false)) return false;
    const auto result = waiters_.wait(waiting, limit);
    if (result == exec::WaitResult::notified || is_over(until) || executor.clock().now() < *limit) continue;
    throw_timeout(timeout, waiting);
  }
  return true;
}

// A timeout is thrown here, not only thrown again, so that reports know where the rank waited.
void RankWork::throw_failure() {
  note_that_it_is_known();
  exec::this_rank::fail_call(exception_);
  if (!timed_out_) std::rethrow_exception(exception_);
  try {
    std::rethrow_exception(exception_);
  } catch (const TimeoutError& error) {
    throw TimeoutError(error);
  }
}

TimeoutError RankWork::timeout_error(std::chrono::milliseconds timeout, const exec::Observer& waiting) const {
  const auto missing = waiting.waits_for();
  const auto why = missing.empty() ? std::string("all ranks are there, the transfer takes longer")
                                   : "missing ranks: " + rank_numbers(missing);
  return {fmt::format("{}: Timed out waiting {}ms of {}; {}", waiting.call(), timeout.count(),
                      exec::kind_of_time(owner_->executor().clock()), why),
          group().name, sequence_, missing};
}

void RankWork::throw_timeout(std::chrono::milliseconds timeout, const exec::Observer& waiting) {
  gave_up_ = true;
  owner_->note_failure_known(rank_);
  exec::this_rank::note_given_up(waiting);
  owner_->note_error(rank_, c10d::ErrorType::TIMEOUT);
  futures_.mark_result(result_so_far());
  try {
    throw timeout_error(timeout, waiting);
  } catch (...) {
    timeout_ = std::current_exception();
    exec::this_rank::fail_call(timeout_);
    throw;
  }
}

}  // namespace rehearse::comm
