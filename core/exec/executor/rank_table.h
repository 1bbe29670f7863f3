// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <rehearse/exec/observer.h>
#include <rehearse/exec/time.h>
#include <rehearse_internal/exec/check.h>
#include <rehearse_internal/exec/failure.h>

#include "exec/fiber/fiber.h"

namespace rehearse::exec {

// The executor's facts about each rank: whether it is alive, its incarnation, and whether it has failed.
class RankTable {
 public:
  explicit RankTable(int ranks) : ranks_(static_cast<std::size_t>(ranks)) {}

  // The rank starts: `main` can run.
  void begin(int rank, const Fiber& main) noexcept {
    Rank& entry = at(rank);
    REHEARSE_CHECK(entry.main == nullptr && main.active() && main.is_main(), rank, main.id, main.state);
    entry.main = &main;
    ++mains_alive_;
  }
  // The main fiber has ended, for any reason.
  void end(int rank) noexcept {
    REHEARSE_CHECK(mains_alive_ > 0 && at(rank).main != nullptr && !is_alive(rank), rank, mains_alive_);
    --mains_alive_;
  }
  // Starts a new incarnation of a rank that has ended; begin() must follow. The numbering of its helpers continues.
  void renew(int rank) noexcept {
    REHEARSE_CHECK(!is_alive(rank), rank, at(rank).incarnation);
    Rank next;
    next.fibers = at(rank).fibers;
    next.incarnation = at(rank).incarnation + 1;
    at(rank) = std::move(next);
  }

  bool is_alive(int rank) const noexcept {
    const Fiber* const main = at(rank).main;
    if (main == nullptr) return false;
    REHEARSE_CHECK(main->is_main() && main->rank == rank, rank, main->id, main->rank, main->fiber_of_rank);
    return main->active();
  }
  bool any_alive() const noexcept { return mains_alive_ > 0; }
  int incarnation(int rank) const noexcept { return at(rank).incarnation; }

  // The number of a new helper fiber. The main fiber is 0 in every incarnation.
  std::uint32_t next_helper(int rank) noexcept { return at(rank).fibers++; }
  bool has_had_helpers(int rank) const noexcept { return at(rank).fibers > 1; }

  void note_failed(int rank) noexcept { at(rank).failed = true; }
  bool has_failed(int rank) const noexcept { return at(rank).failed; }

  // See RankExecutor::note_given_up().
  void note_given_up(int rank, const Observer& observer, VirtualTime now);
  const std::optional<GivenUpWait>& gave_up(int rank) const noexcept { return at(rank).gave_up; }

 private:
  struct Rank {
    const Fiber* main = nullptr;
    bool failed = false;
    std::uint32_t fibers = 1;  // the number of the next helper; continues over incarnations
    int incarnation = 0;
    std::optional<GivenUpWait> gave_up;
  };
  Rank& at(int rank) noexcept { return ranks_[static_cast<std::size_t>(rank)]; }
  const Rank& at(int rank) const noexcept { return ranks_[static_cast<std::size_t>(rank)]; }

  std::vector<Rank> ranks_;
  int mains_alive_ = 0;
};

inline void RankTable::note_given_up(int rank, const Observer& observer, VirtualTime now) {
  auto& noted = at(rank).gave_up;
  if (noted && noted->at == now) return;
  auto wait = observer.wait();
  noted = {std::move(wait.call), std::move(wait.waits_for), now};
}

}  // namespace rehearse::exec
