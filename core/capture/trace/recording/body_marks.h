// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string_view>

#include <rehearse/graph/node.h>

namespace rehearse::capture {

// Marks around the nodes that are to become the body of one node. outline_bodies() replaces them.
// body_begin(number, name of the higher-order operator, [inputs])
inline constexpr std::string_view kBodyBegin = "rehearse.body_begin";
// body_end(number, [results])
inline constexpr std::string_view kBodyEnd = "rehearse.body_end";

// Marks around the nodes of a tensor hook's code. outline_hooks() replaces them by the node that registers the hook.
// hook_begin(number, tensor): its value is the gradient that the hook gets
inline constexpr std::string_view kHookBegin = "rehearse.hook_begin";
// hook_end(number, [result], whether the code read the gradient's layout): its value is the gradient after the hook.
// Without a result the gradient stays the same.
inline constexpr std::string_view kHookEnd = "rehearse.hook_end";

// The two marks of a body have the same number, and so have the two marks of a hook.
inline std::int64_t number_of_mark(const graph::Node& mark) { return *mark.args()[0].get_if<std::int64_t>(); }

}  // namespace rehearse::capture
