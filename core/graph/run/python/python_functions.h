// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

#include <ATen/core/ivalue.h>

#include <rehearse/graph/node.h>

namespace rehearse::graph {

// A function of Python on numbers, as symbolic sizes are computed with.
struct PythonFunction {
  // Throws std::invalid_argument with the reason when it cannot be computed: wrong types, division by zero, an int
  // beyond 64 bits. Takes `count` values.
  c10::IValue (*call)(const std::vector<c10::IValue>& arguments);
  std::size_t count;
  std::array<std::string_view, 3> names = {};  // of its parameters; empty: they are given by position only
};

// `_operator.add`, `math.trunc`, `torch.sym_max`, ...; null when it is not known. `_operator.getitem` takes lists,
// tuples and dicts.
const PythonFunction* find_python_function(std::string_view target) noexcept;

// What the node gives for each parameter. Throws GraphError for a wrong number, an unknown name or one given twice.
std::vector<const Argument*> bind_parameters(const Node& node, const PythonFunction& function);

}  // namespace rehearse::graph
