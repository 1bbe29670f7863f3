// SPDX-License-Identifier: BSD-3-Clause
// How a session ends: with the coordinator's outcome, without a coordinator, or although the rank's body does not
// return.
#include <algorithm>
#include <exception>

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <rehearse_internal/archive/archive.h>
#include <rehearse_internal/exec/failure.h>
#include <rehearse_internal/job/early_end.h>

#include "session.h"

namespace rehearse::real {
namespace {

double seconds_of(VirtualDuration duration) { return std::chrono::duration<double>(duration).count(); }

Verdict verdict_of(const JobOutcome& job_outcome) {
  if (!job_outcome.mismatches.empty()) return Verdict::mismatch;
  if (job_outcome.ending == exec::Ending::interrupted) return Verdict::interrupted;
  if (job_outcome.failures.empty()) return Verdict::crashed;
  switch (job_outcome.failures.front().end.kind) {
    case FailureKind::check:
      return Verdict::check_failed;
    case FailureKind::timeout:
      return Verdict::timeout;
    case FailureKind::lost:
      return Verdict::crashed;
    case FailureKind::plain:
    case FailureKind::store:
    case FailureKind::communication:
      break;
  }
  return Verdict::rank_failed;
}

std::string headline_of(const JobOutcome& job_outcome) {
  if (job_outcome.failures.empty()) return job_outcome.why.empty() ? "the job is over" : job_outcome.why;
  const auto& failure = job_outcome.failures.front();
  return fmt::format("rank {}: {}", failure.rank, failure.end.what);
}

}  // namespace

Session::~Session() { close(); }

void Session::close() {
  if (!listener_.joinable()) return;
  transport_.close();
  bool silent = false;
  {
    const std::lock_guard lock(mutex_);
    silent = silence_.is_too_long();
  }
  listener_.request_stop();
  // Wakes the listener. A store that does not answer may not accept messages either.
  if (!silent) tell_self();
  const VirtualDuration within = silent ? VirtualDuration::zero() : check_timeout_;
  stands_still_ = !ends_.join(within, listener_, watch_);
  if (!stands_still_) say_good_bye();
  if (coordinator_ != nullptr && !coordinator_->close(within)) stands_still_ = true;
}

void Session::tell_self() {
  try {
    const std::lock_guard lock(sending_);
    outgoing_.send(MessageQueue::to_rank(rank_), archive::packed(ToRank(StillAlive{})));
  } catch (const c10::Error&) {
    // The store is gone, so the listener has ended, too.
  }
}

// The other ranks read the last message from the store, which this process may serve. So wait until they have read it.
void Session::say_good_bye() {
  if (rank_ != 0 || !job_outcome_) return;
  const auto is_lost = [this](int other) {
    return std::ranges::any_of(job_outcome_->failures, [other](const auto& failure) {
      return failure.rank == other && failure.end.kind == FailureKind::lost;
    });
  };
  std::vector<std::string> keys;
  for (int other = 0; other < size_; ++other) {
    if (!is_lost(other)) keys.push_back(fmt::format("bye/{}", other));
  }
  try {
    store_->wait(keys, std::chrono::ceil<std::chrono::milliseconds>(check_timeout_));
  } catch (const c10::Error&) {  // a rank has not read it in time, or the store is gone
  }
}

// Does no input or output, so it goes on if the store does not respond.
void Session::watch(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    changed_.wait_for(lock, stop, heartbeat_interval(check_timeout_) / 2, [] { return false; });
    silence_.look(now());
    if (job_outcome_) {
      end_of_body(lock);
      continue;
    }
    if (!silence_.is_too_long()) continue;
    const auto silent = seconds_of(silence_.length());
    lock.unlock();
    coordinator_is_lost(fmt::format("no message came from it for {:.3g} s", silent));
    lock.lock();
  }
  lock.unlock();
  ends_.note();
}

// The world is over. If the body does not return from its current call, nothing else would end this process.
void Session::end_of_body(std::unique_lock<std::mutex>& lock) {
  if (ended_ || now() - over_since_ < time_to_end(job_outcome_->ending, check_timeout_)) return;
  const EarlyEnd end{verdict_of(*job_outcome_), headline_of(*job_outcome_), rank_,
                     "did not return from its body after the job had ended"};
  lock.unlock();
  end_early(end);
}

// Unless a launcher serves the store, rank 0's process does, and the store ends with that process.
void Session::store_is_gone(const c10::Error& error) {
  const std::string text = error.what_without_backtrace();
  coordinator_is_lost("the job's store ended with it: " + text.substr(0, text.find('\n')));
}

void Session::coordinator_is_lost(const std::string& why) {
  VirtualDuration away{};
  {
    const std::lock_guard lock(mutex_);
    silence_.look(now());
    away = silence_.away();
  }
  // If this process itself did not run for a while (it was stopped), the other processes have gone on without it.
  if (away >= check_timeout_) {
    return give_up(rank_, FailureKind::lost, fmt::format("its process was stopped for {:.3g} s", seconds_of(away)));
  }
  if (rank_ == 0) return give_up(0, FailureKind::store, "the job's store does not answer: " + why);
  give_up(0, FailureKind::lost, "its process is gone: " + why);
}

void Session::give_up(int culprit, FailureKind kind, const std::string& what) {
  {
    const std::lock_guard lock(mutex_);
    if (job_outcome_) return;
  }
  JobOutcome job_outcome;
  job_outcome.ending = exec::Ending::rank_failed;
  job_outcome.why = fmt::format("rank {} failed: {}", culprit, what);
  job_outcome.ranks.assign(static_cast<std::size_t>(size_), exec::RankEnd::aborted);
  job_outcome.ranks[static_cast<std::size_t>(culprit)] = exec::RankEnd::failed;
  job_outcome.ended_at.assign(job_outcome.ranks.size(), now());
  job_outcome.failures.push_back({culprit, {exec::RankEnd::failed, kind, what, now()}, "", {}});
  for (int rank = 0; rank < size_; ++rank) {
    if (rank != culprit) job_outcome.blocked.push_back({rank, false, "", "", {}});
  }
  handle_one(Stop{job_outcome.why});
  change([&] {
    if (job_outcome_) return;
    job_outcome_ = job_outcome;
    over_since_ = now();
  });
}

JobOutcome Session::end(const RankEnded& ended) {
  change([&] { ended_ = ended; });
  tell(ended);
  for (;;) {
    wait([this] { return job_outcome_.has_value(); });
    std::unique_lock lock(mutex_);
    // wait() also returns when the world ends, which may be a moment before the job outcome arrives.
    if (changed_.wait_for(lock, std::chrono::milliseconds(100), [this] { return job_outcome_.has_value(); }))
      return *job_outcome_;
  }
}

}  // namespace rehearse::real
