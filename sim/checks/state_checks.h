// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>

#include <rehearse_internal/checks/world_checks.h>
#include <rehearse_internal/comm/communicators.h>
#include <rehearse_internal/comm/followed_transfers.h>
#include <rehearse_internal/comm/forwarding_fabric.h>

#include "explain/reductions_fabric.h"

namespace rehearse::sim {

// A fabric in front of another one. It looks for NaN and Inf in the inputs and outputs of transfers. If the world's
// checks ask for finite values, it ends the world in three cases: a rank passes a NaN or Inf to a sum or product; a
// rank passes a NaN to a minimum or maximum; a sum or product of finite numbers is not finite. It also notes the origin
// of each output that has a NaN or Inf (checks::Origin): for every kind of call if the checks ask for explanations,
// otherwise for sums and products. The constructor's arguments must outlive this object.
class WatchingFabric final : public comm::ForwardingFabric {
 public:
  WatchingFabric(comm::Fabric& below, checks::WorldChecks& checks);
  ~WatchingFabric() override;

  void launch(const comm::Transfer& transfer, comm::Completion& done) override;
  void cancel(comm::Completion& done) noexcept override;

 private:
  class Watched;

  bool is_looked_at(const comm::Operation& call) const;
  checks::OriginPtr taken(const comm::Transfer& transfer);
  void check_compared(const comm::Transfer& transfer);
  void brought(const comm::Transfer& transfer, const checks::OriginPtr& taken);

  checks::WorldChecks& checks_;
  comm::FollowedTransfers<Watched> under_way_;
};

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
