// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>
#include <rehearse/sim/compute_model.h>

namespace rehearse::sim {

// The floating-point operations of one call. A multiplication with an addition counts as two.
struct Flops {
  double fixed = 0;
  double per_point = 0;  // multiplied by the first result's sizes from dimension 2 on (convolutions)
};

// The cost of one call of an operator. Construct it from the arguments before the call, and pass the results to
// duration() after the call.
class OperatorCost {
 public:
  OperatorCost(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments);

  VirtualDuration duration(c10::ArrayRef<c10::IValue> results, const ComputeModel& model) const;

 private:
  bool moves_bytes_;
  Flops flops_;
  double bytes_taken_ = 0;
};

// Throws std::invalid_argument, naming the field, if `model` makes no sense.
void require_valid(const ComputeModel& model);

}  // namespace rehearse::sim
