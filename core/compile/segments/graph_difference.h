// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <rehearse/graph/graph_module.h>

namespace rehearse::compiler {

inline constexpr const char* kEndOfFunction = "the end of the function";

// Explains how two graphs differ, for example "it was torch.ops.aten.add.Tensor at model.cpp:12, and is
// torch.ops.aten.mul.Tensor at model.cpp:14 now". Names the first operators that differ (with arguments if these
// differ), or else the ends. `before_ends`, `now_ends`: what follows the last operator, in words. Empty if there is no
// difference.
std::string difference_of(const graph::GraphModule& before, const graph::GraphModule& now,
                          const std::string& before_ends = kEndOfFunction,
                          const std::string& now_ends = kEndOfFunction);

// The text of a node, such as "torch.ops.aten.add.Tensor at model.cpp:12".
std::string text_of_node(const graph::Node& node);

// Throws StaleCapture. `told`: the difference.
[[noreturn]] void throw_stale(const std::string& function, const std::string& told);

}  // namespace rehearse::compiler
