// SPDX-License-Identifier: BSD-3-Clause
#include "note_static_thread.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <rehearse_internal/exec/static_threads.h>

#include "exec/interpose/world_state.h"

namespace rehearse::exec {
namespace {

constinit std::vector<StaticThread> threads_of_statics;

}  // namespace

const std::vector<StaticThread>& static_threads() noexcept { return threads_of_statics; }

namespace interpose {
namespace {

bool is_at_one_of(const Fiber& fiber, const Initialisations& initialisations) {
  const auto& running = initialisations.running();
  return std::ranges::any_of(running, [&](const auto& each) { return each.second == &fiber; });
}

}  // namespace

void note_if_static(const Fiber& fiber) {
  const WorldState& world = world_of(fiber);
  if (!is_at_one_of(fiber, world.guards) && !is_at_one_of(fiber, world.onces)) return;
  auto where = CallSite::capture();
  const bool is_known = std::ranges::any_of(
      threads_of_statics, [&](const auto& each) { return each.rank == fiber.rank && each.where == where; });
  if (!is_known) threads_of_statics.push_back({fiber.rank, std::move(where)});
}

}  // namespace interpose
}  // namespace rehearse::exec
