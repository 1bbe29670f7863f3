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

// What is known to hold: ranges of symbols and of sums, symbols that equal something simpler, and other conditions.
class Facts {
 public:
  void set_range(const Expr& symbol, const Range& range) { ranges_[symbol] = range; }

  // `condition` holds from now on. It must not contradict what is known, which decide() tells before.
  void assume(const Condition& condition);

  // With each symbol that equals something simpler replaced by it.
  Expr simplify(const Expr& expr) const;
  Condition simplify(const Condition& condition) const;

  // What of a size that is known only at run time is taken for true.
  enum class Unbacked { AsKnown, AtLeastTwo };

  // None when it holds for some values and not for others, or that is not seen.
  std::optional<bool> decide(const Condition& condition, Unbacked unbacked = Unbacked::AsKnown) const;
  Range range(const Expr& expr) const;

 private:
  Range known(const Expr& expr, Unbacked unbacked) const;
  std::optional<bool> decide_simplified(const Condition& condition, Unbacked unbacked) const;
  void assume_comparison(const Condition& condition);
  void assume_equal(const Expr& zero);
  void narrow(const Expr& expr, const Range& range);
  void replace(const std::string& symbol, const Expr& replacement);

  std::map<Expr, Range> ranges_;  // by symbol, and by sums without constant whose first coefficient is positive
  std::map<std::string, Expr> replacements_;  // none has a symbol that is replaced itself
  std::set<Condition> true_;
};

}  // namespace rehearse::shapes
