// SPDX-License-Identifier: BSD-3-Clause
#include "restarts.h"

#include <algorithm>
#include <utility>

#include <rehearse_internal/exec/check.h>
#include <rehearse_internal/exec/restart.h>
#include <rehearse_internal/exec/timer_queue.h>

#include "rank_life.h"
#include "rank_table.h"
#include "world_outcome.h"

namespace rehearse::exec {

void restart_rank(RankExecutor& executor, int rank, VirtualDuration after, std::function<void()> before) {
  executor.parts().restarts.plan(rank, after, std::move(before));
}

bool is_to_begin_again(RankExecutor& executor, int rank) noexcept { return executor.parts().restarts.is_planned(rank); }

WorldHold::WorldHold(RankExecutor& executor) noexcept : executor_(executor) { executor_.parts().restarts.hold(); }
WorldHold::~WorldHold() { executor_.parts().restarts.let_go(); }

int incarnation(RankExecutor& executor, int rank) noexcept { return executor.parts().ranks.incarnation(rank); }

class Restarts::Restart final : public Timer {
 public:
  Restart(Restarts& all, int rank, std::function<void()> before) : all_(all), rank_(rank), before_(std::move(before)) {}
  ~Restart() override { all_.world_.timers.cancel(*this); }

  int rank() const noexcept { return rank_; }
  const std::function<void()>& before() const noexcept { return before_; }

 private:
  Kind kind() const noexcept override { return Kind::fault; }
  void fire() override { all_.begin_again(*this); }

  Restarts& all_;
  const int rank_;
  const std::function<void()> before_;
};

Restarts::Restarts(WorldParts& world) noexcept : world_(world) {}
Restarts::~Restarts() = default;

void Restarts::plan(int rank, VirtualDuration after, std::function<void()> before) {
  REHEARSE_CHECK(rank >= 0 && rank < world_.options.ranks, rank, world_.options.ranks);
  if (world_.outcome.ended()) return;
  auto& planned = *planned_.emplace_back(std::make_unique<Restart>(*this, rank, std::move(before)));
  world_.timers.arm(planned, later(world_.clock.now(), after));
  ++due_;
}

bool Restarts::is_planned(int rank) const noexcept {
  return std::ranges::any_of(planned_,
                             [rank](const auto& planned) { return planned->armed() && planned->rank() == rank; });
}

void Restarts::let_go() noexcept {
  REHEARSE_CHECK(holds_ > 0, holds_);
  --holds_;
}

bool Restarts::are_awaited() const noexcept { return !world_.outcome.ended() && (due_ > 0 || holds_ > 0); }

void Restarts::begin_again(const Restart& restart) noexcept {
  REHEARSE_CHECK(due_ > 0, restart.rank(), planned_.size());
  --due_;
  if (world_.outcome.ended() || world_.ranks.is_alive(restart.rank())) return;
  world_.rank_life.begin_again(restart.rank(), restart.before());
}

void Restarts::call_off() noexcept {
  REHEARSE_CHECK(world_.outcome.ended(), due_, holds_);
  for (const auto& planned : planned_) world_.timers.cancel(*planned);
  due_ = 0;
}

}  // namespace rehearse::exec
