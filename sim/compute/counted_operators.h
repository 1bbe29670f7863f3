// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>

#include <rehearse/sim/compute_model.h>
#include <rehearse_internal/operators/seen_operators.h>

#include "operator_cost.h"

namespace rehearse::sim {

// Makes the operators of a rank take virtual time.
class CountedOperators final : public operators::OperatorWatcher {
 public:
  explicit CountedOperators(const ComputeModel& model) : model_(model) {}  // `model` must outlive this object

  void before(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments) override;
  void after(c10::ArrayRef<c10::IValue> results) override;

 private:
  const ComputeModel& model_;
  std::optional<OperatorCost> cost_;  // the running operator's cost
};

}  // namespace rehearse::sim
