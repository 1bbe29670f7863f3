// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include <ATen/core/ivalue.h>

namespace rehearse::graph {

// What a function of Python on integers gives where one of them is a symbol, as in a run on tensors with symbolic
// sizes: arithmetic and comparisons of c10's symbolic numbers. None where no argument is symbolic, and for functions
// that have no symbolic form.
std::optional<c10::IValue> call_symbolically(std::string_view target, const std::vector<c10::IValue>& arguments);

}  // namespace rehearse::graph
