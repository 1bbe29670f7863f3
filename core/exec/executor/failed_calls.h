// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <utility>
#include <vector>

#include <rehearse/exec/time.h>

namespace rehearse::exec {

// Counts calls of ranks that fail immediately, again and again, in a loop that catches and retries. Such calls take
// virtual time, so that the condition for which the loop waits can come about. If the count shows that the loop is
// endless, the run is a livelock.
class FailedCalls {
 public:
  // The limit for failures in a row, without progress. With the default network these failures take nine minutes. That
  // is less than c10d's default timeout, because a report on such a timeout would not show the loop, only the ranks
  // that wait for it.
  static constexpr std::uint64_t kMost = 20'000;
  static constexpr VirtualDuration kCostMax = std::chrono::milliseconds(50);

  static constexpr std::size_t kKinds = 2;

  // A rank's last call of a kind, and which of its fibers made it.
  struct Call {
    static constexpr std::uint32_t kOver = static_cast<std::uint32_t>(-1);
    std::uint32_t fiber = kOver;  // Fiber::id
    VirtualTime began{};
  };

  explicit FailedCalls(int ranks) : last_(static_cast<std::size_t>(ranks)), errors_(last_.size()) {}

  // `kind`: a this_rank::CallOn.
  Call& last(int rank, std::size_t kind) noexcept { return last_[static_cast<std::size_t>(rank)].at(kind); }

  // False if the limit is exceeded.
  bool count(int rank, VirtualTime now) noexcept {
    if (count_++ == 0) since_ = now;
    rank_ = rank;
    return count_ <= kMost;
  }
  // How long the failed call takes: as for polls, a fraction of the time since the first failure, within limits. The
  // upper limit grows with the number of failures, so that a few failures far apart take little time.
  VirtualDuration cost(VirtualTime now, VirtualDuration least) const noexcept {
    constexpr std::int64_t kParts = 1'000;
    const auto most = std::min(least * static_cast<std::int64_t>(count_), std::max(least, kCostMax));
    return std::clamp((now - since_) / kParts, least, most);
  }

  // `by`: the rank that made progress, or -1 if it was no rank (a timer has fired, or a rank has crashed or restarted).
  // Progress of the failing rank itself does not count, because it belongs to the loop.
  void note_progress(int by) noexcept {
    if (by != rank_) count_ = 0;
  }

  // The errors of the rank's last calls that failed, the last one at the end.
  const std::vector<std::exception_ptr>& errors_of(int rank) const { return errors_[static_cast<std::size_t>(rank)]; }
  void keep_error(int rank, const std::exception_ptr& error) {
    constexpr std::size_t kKept = 64;  // more buckets than a model has in flight
    auto& errors = errors_[static_cast<std::size_t>(rank)];
    if (errors.size() == kKept) errors.erase(errors.begin());
    errors.push_back(error);
  }

  void note_error(std::exception_ptr error) noexcept { last_error_ = std::move(error); }
  const std::exception_ptr& last_error() const noexcept { return last_error_; }

 private:
  std::vector<std::array<Call, kKinds>> last_;           // by rank and kind
  std::vector<std::vector<std::exception_ptr>> errors_;  // by rank
  std::uint64_t count_ = 0;
  VirtualTime since_{};
  int rank_ = -1;  // the rank that failed last
  std::exception_ptr last_error_;
};

}  // namespace rehearse::exec
