// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <rehearse/shapes/expr.h>
#include "capture/fake/call/operator_call.h"

namespace rehearse::capture {

// Values of symbols.
using Assignment = std::map<std::string, std::int64_t>;

// The symbols among a call's sizes and integers, sorted; and the expressions that are no numbers, each once.
struct CallSymbols {
  std::vector<std::string> names;
  std::vector<shapes::Expr> expressions;
};
CallSymbols symbols_of(const Call& call);

std::int64_t value_at(const shapes::Expr& expr, const Assignment& values);

// Small and different values of the symbols, of which the guards are true; at most `wanted`. The same for the same
// call. Empty where there are none.
std::vector<Assignment> assignments_for(const CallSymbols& symbols, const shapes::ShapeEnv& shapes, std::size_t wanted);

// An expression that has these values at these assignments: a number, one of `symbols.expressions`, a polynomial of
// degree 2 with integer coefficients, or the quotient of a linear one. None where there is none of those.
std::optional<shapes::Expr> fit(const std::vector<std::int64_t>& values, const std::vector<Assignment>& assignments,
                                const CallSymbols& symbols);

}  // namespace rehearse::capture
