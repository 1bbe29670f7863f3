// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <rehearse/graph/graph_module.h>

namespace rehearse::compiler {

inline constexpr const char* kEndOfFunction = "the end of the function";

// Explains how two graphs differ, for example "it was torch.ops.aten.add.Tensor at model.cpp:12, and is
// torch.ops.aten.mul.Tensor at model.cpp:14 now". Names the first operators that differ, with their arguments if only
// the arguments differ. If one graph has an operator where the other one has ended, names the end by `before_ends` or
// `now_ends`. Empty if the graphs do not differ.
std::string difference_of(const graph::GraphModule& before, const graph::GraphModule& now,
                          const std::string& before_ends = kEndOfFunction,
                          const std::string& now_ends = kEndOfFunction);

// The text of a node, such as "torch.ops.aten.add.Tensor at model.cpp:12".
std::string text_of_node(const graph::Node& node);

// Throws StaleCapture. `difference`: the result of difference_of().
[[noreturn]] void throw_stale(const std::string& function, const std::string& difference);

}  // namespace rehearse::compiler
