// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>

#include <c10/core/SymBool.h>
#include <c10/core/SymInt.h>

#include <rehearse/shapes/expr.h>
#include <rehearse_internal/shapes/shape_env.h>

// Converts between LibTorch's symbolic numbers and ours. A c10::SymInt made here computes with Expr and asks its
// ShapeEnv.
namespace rehearse::shapes {

// The expression, which may be a number, simplified by what its ShapeEnv now knows. Throws ShapeError for a SymInt of
// other origin.
Expr expr_of(const c10::SymInt& value);

// Returns a plain number if the expression is one.
c10::SymInt to_sym_int(const std::shared_ptr<ShapeEnv>& env, const Expr& expr);

// Like TORCH_GUARD_OR_FALSE(), but assumes that sizes that are known only at run time are neither 0 nor 1, as
// TORCH_GUARD_SIZE_OBLIVIOUS() does. `asker`: the function that asks, for the guard's text.
bool guard_size_oblivious_or_false(const c10::SymBool& condition, const char* asker);

// The value in torch.export's notation, such as `2*s0`. Throws ShapeError as expr_of() does.
std::string text_of(const c10::SymInt& value);

}  // namespace rehearse::shapes
