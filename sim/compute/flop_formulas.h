// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>

#include <ATen/core/ivalue.h>

namespace rehearse::sim {

// Floating-point operations of one call, a multiplication and an addition being two.
struct Flops {
  double fixed = 0;
  double per_point = 0;  // of the first result's dimensions from the third on: of convolutions
};

// The flops of aten::<name> (without overload name), in place or not, by the formulas of torch.utils.flop_counter; none
// if the operator has no formula there.
Flops flops_of(std::string_view name, c10::ArrayRef<c10::IValue> arguments);

}  // namespace rehearse::sim
