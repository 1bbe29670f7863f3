// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>

#include <rehearse_internal/checks/world_checks.h>
#include <rehearse_internal/comm/communicators.h>

#include "explain/reductions_fabric.h"
#include "watching_fabric.h"

namespace rehearse::sim {

// The state checkers of a simulated world, and the fabrics that let them see transfers. The constructor's arguments
// must outlive this object.
class StateChecks {
 public:
  StateChecks(exec::RankExecutor& executor, const checks::AutomaticChecks& options, checks::WorldChecks::Counts& held);

  // Call this at most once. Returns the fabric that transfers must go through so that the checks see them, or
  // `transport` itself if no check needs that.
  comm::Fabric& in_front_of(comm::Fabric& transport);

  // Call this before the ranks run: findings take the ranks' labels from `communicators`.
  void begin(const comm::Communicators& communicators) noexcept { communicators_ = &communicators; }

  checks::WorldChecks& of_world() noexcept { return of_world_; }

 private:
  std::string label_of(int rank) const;

  const comm::Communicators* communicators_ = nullptr;
  checks::WorldChecks of_world_;
  std::optional<WatchingFabric> watching_;
  std::optional<ReductionsFabric> reductions_;
};

}  // namespace rehearse::sim
