// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <rehearse/sim/fault.h>
#include <rehearse_internal/fakes/cost_model.h>

namespace rehearse::sim {

// The factor by which the faults slow `rank` down.
double slowness(const std::vector<Fault>& faults, int rank);

// `factor` times the duration.
VirtualDuration slowed(VirtualDuration duration, double factor);

// A transfer takes as long as its slowest rank makes it.
class SlowCost final : public fakes::CostModel {
 public:
  // `below` must outlive it.
  SlowCost(const fakes::CostModel& below, const std::vector<Fault>& faults, int ranks);

  VirtualDuration duration(const comm::Transfer& transfer) const override;

 private:
  const fakes::CostModel& below_;
  std::vector<double> factors_;  // by rank; empty: nothing is slow
};

}  // namespace rehearse::sim
