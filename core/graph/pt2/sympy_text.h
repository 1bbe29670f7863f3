// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>

namespace rehearse::graph {

// torch.export writes expressions as constructor calls: `Add(Mul(Integer(2), Symbol('s0', integer=True)), Integer(1))`.
// Returns the notation of Dynamo: `2*s0 + 1`. Functions that have no sign stay calls: `Max(1, s0)`. A text that is no
// such call, or nests calls deeper than kMaxNesting, is returned as it is.
std::string sympy_text(std::string_view constructors);

}  // namespace rehearse::graph
