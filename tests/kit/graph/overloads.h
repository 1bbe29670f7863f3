// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>

#include "graph/run/call/to_ivalue.h"

namespace rehearse::graph {

// All overloads of one ATen operator. call() chooses the overload that fits the arguments, like Python's binding: a
// number may stand for a tensor, one int may stand for a list of fixed length, and trailing ints may stand for a list
// that is the last positional argument (`x.view(2, 3)`). An exact fit wins over a conversion.
class Overloads {
 public:
  // `name`: without its namespace, such as "add". Has no overloads if LibTorch has no such operator.
  explicit Overloads(std::string_view name);

  bool empty() const noexcept { return overloads_.empty(); }

  // `first`: number of leading `args` that cannot belong to a list of trailing ints; 1 for a method's self. Throws
  // GraphError if no overload accepts the arguments.
  c10::IValue call(const Node& node, const List& args, const Dict& kwargs, std::size_t first,
                   const ValueOf& value_of) const;

 private:
  std::string name_;
  std::vector<c10::OperatorHandle> overloads_;  // by name
};

}  // namespace rehearse::graph
