// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>

#include "graph/run/call/to_ivalue.h"

namespace rehearse::graph {

// All overloads of one of ATen's operators, and calls of the one that the arguments fit, as Python's binding chooses
// it: numbers may stand for tensors, one int for a list of given length, and trailing ints for an operator's only list
// (`x.view(2, 3)`). An exact fit goes before one by conversion.
class Overloads {
 public:
  // `name` without its namespace: "add". Empty when LibTorch has no such operator.
  explicit Overloads(std::string_view name);

  bool empty() const noexcept { return overloads_.empty(); }

  // `first`: how many of `args` are no part of a list that trailing ints make: 1 for a method's self. Throws GraphError
  // when no overload takes the arguments.
  c10::IValue call(const Node& node, const List& args, const Dict& kwargs, std::size_t first,
                   const ValueOf& value_of) const;

 private:
  std::string name_;
  std::vector<c10::OperatorHandle> overloads_;  // by name
};

}  // namespace rehearse::graph
