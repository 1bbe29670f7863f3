// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse_internal/checks/world_checks.h>
#include <rehearse_internal/comm/followed_transfers.h>
#include <rehearse_internal/comm/forwarding_fabric.h>

namespace rehearse::sim {

// A fabric in front of another one that looks for NaN and Inf in what transfers take and bring. Where the checks of the
// world ask for it, it ends a world in which a rank brings one into a sum, or a NaN into a minimum or maximum, or a sum
// of finite numbers is none; where they are to be explained, it hands on where they came from. What it is given
// outlives it.
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

}  // namespace rehearse::sim
