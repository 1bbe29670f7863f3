// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <stdexcept>
#include <string>

#include <rehearse/exec/call_site.h>

namespace rehearse::shapes {

// Base class of all errors of this room.
class ShapeError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A number in an expression does not fit into 64 bits.
class OverflowError : public ShapeError {
 public:
  using ShapeError::ShapeError;
};

// A division or remainder by the number 0.
class DivisionByZero : public ShapeError {
 public:
  using ShapeError::ShapeError;
};

// An expression exceeds kMaxTerms, kMaxWeight or kMaxDepth of expr.h, or a condition has more than kMaxTerms parts.
class ExpressionTooLarge : public ShapeError {
 public:
  using ShapeError::ShapeError;
};

// The code needs to know something that is known only when it runs with real data, such as the size of nonzero()'s
// result or a condition on that size. what() names the condition, the user's line and what to do.
class DataDependentError : public ShapeError {
 public:
  // `asked`: the condition or the expression. `made`: where its unbacked symbols were defined, in words.
  DataDependentError(std::string asked, const std::string& made, exec::CallSite where);

  const std::string& asked() const noexcept { return asked_; }
  const exec::CallSite& where() const noexcept { return where_; }

 private:
  std::string asked_;
  exec::CallSite where_;
};

}  // namespace rehearse::shapes
