// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <rehearse/graph/graph_module.h>

namespace rehearse::compiler {

inline constexpr const char* kEndOfFunction = "the end of the function";

// "it was torch.ops.aten.add.Tensor at model.cpp:12, and is torch.ops.aten.mul.Tensor at model.cpp:14 now": the first
// operators in which they differ (with arguments where these do), or else what they end with; `before_ends`,
// `now_ends`: in words. Empty: they do not differ.
std::string difference_of(const graph::GraphModule& before, const graph::GraphModule& now,
                          const std::string& before_ends = kEndOfFunction,
                          const std::string& now_ends = kEndOfFunction);

// "torch.ops.aten.add.Tensor at model.cpp:12".
std::string text_of_node(const graph::Node& node);

// Throws StaleCapture: `told` is what differs.
[[noreturn]] void throw_stale(const std::string& function, const std::string& told);

}  // namespace rehearse::compiler
