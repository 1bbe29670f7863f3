// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include <ATen/core/ivalue.h>

namespace rehearse::graph {

// Calls one of Python's functions on integers, some of which are symbols because tensors have symbolic sizes. Uses the
// arithmetic and comparisons of c10's symbolic numbers. Returns nothing if no argument is symbolic, if an argument is
// no integer or truth value, or if no symbol can express the result, as for a negative exponent.
std::optional<c10::IValue> call_symbolically(std::string_view target, const std::vector<c10::IValue>& arguments);

}  // namespace rehearse::graph
