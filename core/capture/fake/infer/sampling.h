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

// The symbols in a call's sizes, strides, offsets and integers, sorted; and the expressions among these values that
// contain symbols, each expression once.
struct CallSymbols {
  std::vector<std::string> names;
  std::vector<shapes::Expr> expressions;
};
CallSymbols symbols_of(const Call& call);

std::int64_t value_at(const shapes::Expr& expr, const Assignment& values);

// Up to `wanted` different assignments of small values that satisfy the guards. Deterministic for the same call. Empty
// if it finds none.
std::vector<Assignment> assignments_for(const CallSymbols& symbols, const shapes::ShapeEnv& shapes, std::size_t wanted);

// Finds an expression that has these values at these assignments: a number, one of `symbols.expressions`, a polynomial
// of degree 2 with integer coefficients, or a quotient `(symbol + b) // c`. Returns nothing if none fits.
std::optional<shapes::Expr> fit(const std::vector<std::int64_t>& values, const std::vector<Assignment>& assignments,
                                const CallSymbols& symbols);

}  // namespace rehearse::capture
