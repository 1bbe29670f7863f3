// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include <rehearse/shapes/condition.h>
#include <rehearse/shapes/expr.h>
#include <rehearse_internal/shapes/range.h>

namespace rehearse::shapes {

// The known facts: ranges of symbols and of other expressions, symbols that equal something simpler, and other
// conditions.
class Facts {
 public:
  void set_range(const Expr& symbol, const Range& range) { ranges_[symbol] = range; }

  // Adds the fact that `condition` holds. The condition must not contradict the known facts, so decide() must not
  // return false for it.
  void assume(const Condition& condition);

  // Replaces each symbol that equals something simpler.
  Expr simplify(const Expr& expr) const;
  Condition simplify(const Condition& condition) const;

  // The assumption about a size that is known only at run time.
  enum class Unbacked { AsKnown, AtLeastTwo };

  // True or false if the facts decide the condition for all values, else nothing.
  std::optional<bool> decide(const Condition& condition, Unbacked unbacked = Unbacked::AsKnown) const;
  Range range(const Expr& expr) const;

 private:
  Range known(const Expr& expr, Unbacked unbacked) const;
  std::optional<bool> decide_simplified(const Condition& condition, Unbacked unbacked) const;
  void assume_comparison(const Condition& condition);
  void assume_equal(const Expr& zero);
  void narrow(const Expr& expr, const Range& range);
  void replace(const std::string& symbol, const Expr& replacement);

  std::map<Expr, Range> ranges_;              // of expressions without a constant, with a positive first coefficient
  std::map<std::string, Expr> replacements_;  // no replacement contains a symbol that is itself replaced
  std::set<Condition> true_;
};

}  // namespace rehearse::shapes
