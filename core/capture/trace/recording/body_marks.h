// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>

namespace rehearse::capture {

// Nodes around what is to become the body of one node, until outline_bodies() makes it.
// body_begin(number, name of the higher-order operator, [inputs])
inline constexpr std::string_view kBodyBegin = "rehearse.body_begin";
// body_end(number, [results])
inline constexpr std::string_view kBodyEnd = "rehearse.body_end";

}  // namespace rehearse::capture
