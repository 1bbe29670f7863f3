// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include <rehearse_internal/exec/check.h>

namespace rehearse::exec {

// The pending work of each rank (RankExecutor::post()), and whether a fiber of the rank is processing it.
class PostedWork {
 public:
  using Work = std::function<void()>;

  explicit PostedWork(int ranks) : ranks_(static_cast<std::size_t>(ranks)) {}

  // Returns true if no fiber is processing the rank's work: then the caller must start one.
  bool add(int rank, Work work) {
    Rank& owner = at(rank);
    owner.waiting.push_back(std::move(work));
    return !std::exchange(owner.is_taken, true);
  }

  // The processing fiber calls this for the oldest piece of work. nullopt: there is no more, and the fiber must end.
  std::optional<Work> take(int rank) {
    Rank& owner = at(rank);
    REHEARSE_CHECK(owner.is_taken, rank, owner.waiting.size());
    if (owner.waiting.empty()) {
      owner.is_taken = false;
      return std::nullopt;
    }
    auto work = std::move(owner.waiting.front());
    owner.waiting.pop_front();
    return work;
  }

  // The rank has ended: destroys its pending work. The fiber that processes the work unwinds like any other.
  void drop(int rank) { at(rank).waiting.clear(); }

  // The rank has crashed, including the fiber that processes its work: keeps the pending work, because no destructor
  // may run.
  void bury(int rank) {
    buried_.push_back(std::exchange(at(rank).waiting, {}));
    at(rank).is_taken = false;
  }

 private:
  struct Rank {
    std::deque<Work> waiting;
    bool is_taken = false;
  };
  Rank& at(int rank) noexcept { return ranks_[static_cast<std::size_t>(rank)]; }

  std::vector<Rank> ranks_;
  std::vector<std::deque<Work>> buried_;
};

}  // namespace rehearse::exec
