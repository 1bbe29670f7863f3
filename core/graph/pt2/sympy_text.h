// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>

namespace rehearse::graph {

// Converts expressions from constructor calls, as torch.export writes them, to the notation of Dynamo:
// `Add(Mul(Integer(2), Symbol('s0', integer=True)), Integer(1))` becomes `2*s0 + 1`. Functions without an operator stay
// calls: `Max(1, s0)`. Returns the text unchanged if it is no such call, or if its calls are nested deeper than
// kMaxNesting.
std::string sympy_text(std::string_view constructors);

}  // namespace rehearse::graph
