// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>

#include <ATen/core/ivalue.h>

namespace rehearse::sim {

// The floating-point operations of one call. A multiplication with an addition counts as two.
struct Flops {
  double fixed = 0;
  double per_point = 0;  // multiplied by the first result's sizes from dimension 2 on (convolutions)
};

// The flops of aten::<name> (without overload name), in place or not: a matrix product, a convolution or attention, by
// the formulas of torch.utils.flop_counter. Attention on the CPU, which has no formula there, counts as on a GPU. Zero
// for other operators, and for those that convolution and attention call inside, such as aten::_convolution.
Flops flops_of(std::string_view name, c10::ArrayRef<c10::IValue> arguments);

}  // namespace rehearse::sim
