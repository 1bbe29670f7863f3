// SPDX-License-Identifier: BSD-3-Clause
// How a session ends: by the judge's ruling, without the judge, and without the rank.
#include <algorithm>
#include <exception>

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <rehearse_internal/exec/failure.h>
#include <rehearse_internal/job/early_end.h>

#include "session.h"

namespace rehearse::real {
namespace {

double seconds_of(VirtualDuration duration) { return std::chrono::duration<double>(duration).count(); }

Verdict verdict_of(const Ruling& ruling) {
  if (!ruling.mismatches.empty()) return Verdict::mismatch;
  if (ruling.ending == exec::Ending::interrupted) return Verdict::interrupted;
  if (ruling.failures.empty()) return Verdict::crashed;
  switch (ruling.failures.front().end.kind) {
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

std::string headline_of(const Ruling& ruling) {
  if (ruling.failures.empty()) return ruling.why.empty() ? "the job is over" : ruling.why;
  const auto& failure = ruling.failures.front();
  return fmt::format("rank {}: {}", failure.rank, failure.end.what);
}

}  // namespace

Session::~Session() { close(); }

void Session::close() {
  if (!listener_.joinable()) return;
  carrier_.close();
  bool silent = false;
  {
    const std::lock_guard lock(mutex_);
    silent = silence_.is_too_long();
  }
  listener_.request_stop();
  // Wakes the listener. A store that does not answer may take nothing either.
  if (!silent) tell_self();
  const VirtualDuration within = silent ? VirtualDuration::zero() : patience_;
  stands_still_ = !ends_.join(within, listener_, watch_);
  if (!stands_still_) say_good_bye();
  if (judge_ != nullptr && !judge_->close(within)) stands_still_ = true;
}

void Session::tell_self() {
  try {
    const std::lock_guard lock(sending_);
    outgoing_.send(Mail::to_rank(rank_), packed(ToRank(StillAlive{})));
  } catch (const c10::Error&) {
    // The store is gone, and so is the listener.
  }
}

// The others read the last word from the store, which this process may serve.
void Session::say_good_bye() {
  if (rank_ != 0 || !ruling_) return;
  const auto is_lost = [this](int other) {
    return std::any_of(ruling_->failures.begin(), ruling_->failures.end(), [other](const auto& failure) {
      return failure.rank == other && failure.end.kind == FailureKind::lost;
    });
  };
  std::vector<std::string> keys;
  for (int other = 0; other < size_; ++other) {
    if (!is_lost(other)) keys.push_back(fmt::format("bye/{}", other));
  }
  try {
    store_->wait(keys, std::chrono::ceil<std::chrono::milliseconds>(patience_));
  } catch (const c10::Error&) {
  }
}

// Does no input or output: where the store stands still, this thread goes on.
void Session::watch(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    changed_.wait_for(lock, stop, time_between_beats(patience_) / 2, [] { return false; });
    silence_.look(now());
    if (ruling_) {
      end_of_body(lock);
      continue;
    }
    if (!silence_.is_too_long()) continue;
    const auto silent = seconds_of(silence_.length());
    lock.unlock();
    judge_is_gone(fmt::format("nothing has been heard of it for {:.3g} s", silent));
    lock.lock();
  }
  lock.unlock();
  ends_.note();
}

// The world is over: where the body does not come back from what it is in, nothing else would end this process.
void Session::end_of_body(std::unique_lock<std::mutex>& lock) {
  if (ended_ || now() - over_since_ < time_to_end(ruling_->ending, patience_)) return;
  const EarlyEnd end{verdict_of(*ruling_), headline_of(*ruling_), rank_,
                     "did not come back from its body after the job's end"};
  lock.unlock();
  end_early(end);
}

// Rank 0 serves the store, unless a launcher does: then it ends with all of its processes.
void Session::store_is_gone(const c10::Error& error) {
  const std::string text = error.what_without_backtrace();
  judge_is_gone("the job's store ended with it: " + text.substr(0, text.find('\n')));
}

void Session::judge_is_gone(const std::string& why) {
  VirtualDuration away{};
  {
    const std::lock_guard lock(mutex_);
    silence_.look(now());
    away = silence_.away();
  }
  // Where this process itself stood still, the others have gone on without it.
  if (away >= patience_) {
    return give_up(rank_, FailureKind::lost, fmt::format("its process was stopped for {:.3g} s", seconds_of(away)));
  }
  if (rank_ == 0) return give_up(0, FailureKind::store, "the job's store does not answer: " + why);
  give_up(0, FailureKind::lost, "its process is gone: " + why);
}

void Session::give_up(int culprit, FailureKind kind, const std::string& what) {
  {
    const std::lock_guard lock(mutex_);
    if (ruling_) return;
  }
  Ruling ruling;
  ruling.ending = exec::Ending::rank_failed;
  ruling.why = fmt::format("rank {} failed: {}", culprit, what);
  ruling.ranks.assign(static_cast<std::size_t>(size_), exec::RankEnd::aborted);
  ruling.ranks[static_cast<std::size_t>(culprit)] = exec::RankEnd::failed;
  ruling.ended_at.assign(ruling.ranks.size(), now());
  ruling.failures.push_back({culprit, {exec::RankEnd::failed, kind, what, now()}, "", {}});
  for (int rank = 0; rank < size_; ++rank) {
    if (rank != culprit) ruling.blocked.push_back({rank, false, "", "", {}});
  }
  heard_one(Stop{ruling.why});
  change([&] {
    if (ruling_) return;
    ruling_ = ruling;
    over_since_ = now();
  });
}

Ruling Session::end(const RankEnded& ended) {
  change([&] { ended_ = ended; });
  tell(ended);
  for (;;) {
    wait([this] { return ruling_.has_value(); });
    std::unique_lock lock(mutex_);
    // Between the world's end and that of its ranks.
    if (changed_.wait_for(lock, std::chrono::milliseconds(100), [this] { return ruling_.has_value(); }))
      return *ruling_;
  }
}

}  // namespace rehearse::real
