// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse_internal/checks/reductions.h>
#include <rehearse_internal/comm/forwarding_fabric.h>

namespace rehearse::sim {

// A fabric in front of another one. It adds to `reductions` the inputs of each all-reduce that sums or averages one
// tensor of floating-point numbers. The constructor's arguments must outlive this object.
class ReductionsFabric final : public comm::ForwardingFabric {
 public:
  ReductionsFabric(comm::Fabric& below, checks::Reductions& reductions)
      : ForwardingFabric(below), reductions_(reductions) {}

  void launch(const comm::Transfer& transfer, comm::Completion& done) override;
  void cancel(comm::Completion& done) noexcept override { below().cancel(done); }

 private:
  void keep(const comm::Transfer& transfer);

  checks::Reductions& reductions_;
};

}  // namespace rehearse::sim
