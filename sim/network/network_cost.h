// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/exec/decision_log.h>
#include <rehearse/sim/network_model.h>
#include <rehearse_internal/fakes/cost_model.h>

namespace rehearse::sim {

// Throws std::invalid_argument with one line for each field that makes no sense.
void require_valid(const NetworkModel& model);

// NetworkModel's formulas as a CostModel of the fabric.
class NetworkCost final : public fakes::CostModel {
 public:
  // `decisions` must outlive this object, which uses it only if the model has jitter. Throws as require_valid() does.
  NetworkCost(const NetworkModel& model, Decisions& decisions);

  VirtualDuration duration(const comm::Transfer& transfer) const override;

 private:
  VirtualDuration jittered(VirtualDuration base) const;

  NetworkModel model_;
  Decisions& decisions_;
};

}  // namespace rehearse::sim
