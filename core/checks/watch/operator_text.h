// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

namespace rehearse::checks {

// "alpha=-0.1": all arguments that are numbers.
std::string numbers_of(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments);

// "aten::bernoulli_(self of [16, 4], p=0.5)": the operator, with its numbers, lists of integers and the sizes of its
// tensors. Leaves out the dtype and other options of a new tensor.
std::string call_text(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments);

}  // namespace rehearse::checks
