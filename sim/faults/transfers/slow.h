// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <rehearse/sim/compute_model.h>
#include <rehearse/sim/fault.h>
#include <rehearse_internal/fakes/cost_model.h>

namespace rehearse::sim {

// How much slower the faults make `rank`; 1: not at all.
double slowness(const std::vector<Fault>& faults, int rank);

// A model of which everything takes `factor` times as long.
ComputeModel slowed(ComputeModel model, double factor);

// Transfers take as long as the slowest of their ranks makes them.
class SlowCost final : public fakes::CostModel {
 public:
  // `below` outlives it.
  SlowCost(const fakes::CostModel& below, const std::vector<Fault>& faults, int ranks);

  VirtualDuration duration(const comm::Transfer& transfer) const override;

 private:
  const fakes::CostModel& below_;
  std::vector<double> factors_;  // by rank
};

}  // namespace rehearse::sim
