// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>
#include <vector>

#include <ATen/core/ivalue.h>

namespace rehearse::graph {

// A function of Python on numbers, as symbolic sizes are computed with. Throws std::invalid_argument with the reason
// when it cannot be computed: wrong types, division by zero, an int beyond 64 bits.
using PythonFunction = c10::IValue (*)(const std::vector<c10::IValue>& arguments);

// `_operator.add`, `math.trunc`, `torch.sym_max`, ...; null when it is not known. `_operator.getitem` takes lists,
// tuples and dicts.
PythonFunction find_python_function(std::string_view target) noexcept;

// How many arguments it takes.
std::size_t argument_count(std::string_view target) noexcept;

}  // namespace rehearse::graph
