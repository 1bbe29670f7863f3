// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

#include <ATen/core/ivalue.h>

#include <rehearse/graph/node.h>

namespace rehearse::graph {

// One of Python's functions on numbers, as used in computations of symbolic sizes.
struct PythonFunction {
  // Takes `count` values. Throws std::invalid_argument with the reason if the result cannot be computed: wrong types,
  // division by zero, an int beyond 64 bits.
  c10::IValue (*call)(const std::vector<c10::IValue>& arguments);
  std::size_t count;
  std::array<std::string_view, 3> names = {};  // parameter names; empty: positional only
};

// Finds `_operator.add`, `math.trunc`, `torch.sym_max`, ...; null if it is unknown. `_operator.getitem` takes lists,
// tuples and dicts.
const PythonFunction* find_python_function(std::string_view target) noexcept;

// The node's argument for each parameter. Throws GraphError for a wrong number of arguments, an unknown name, or a name
// passed twice.
std::vector<const Argument*> bind_parameters(const Node& node, const PythonFunction& function);

}  // namespace rehearse::graph
