// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>

namespace rehearse::capture {

// Nodes around what is to become the body of one node, until outline_bodies() makes it.
// body_begin(number, name of the higher-order operator, [inputs])
inline constexpr std::string_view kBodyBegin = "rehearse.body_begin";
// body_end(number, [results])
inline constexpr std::string_view kBodyEnd = "rehearse.body_end";

// The same around the code of a tensor's hook, until outline_hooks() makes the node that registers it.
// hook_begin(number, tensor), whose value is the gradient that the hook gets
inline constexpr std::string_view kHookBegin = "rehearse.hook_begin";
// hook_end(number, [result], whether the code has asked for the gradient's layout), whose value is what the hook
// leaves; no result: the gradient stays
inline constexpr std::string_view kHookEnd = "rehearse.hook_end";

}  // namespace rehearse::capture
