// SPDX-License-Identifier: BSD-3-Clause
// Canonical forms and texts of integer expressions, and their limits.
#include <rehearse/shapes/expr.h>

#include <cstdint>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/shapes/condition.h>
#include <rehearse/shapes/errors.h>

#include "core/shapes/any_expr.h"

namespace rehearse::shapes {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kGreatest = std::numeric_limits<std::int64_t>::max();

TEST(Expr, TextIsTheNotationOfExport) {
  EXPECT_EQ(Expr(7).text(), "7");
  EXPECT_EQ(Expr(-7).text(), "-7");
  EXPECT_EQ((s0 * 2).text(), "2*s0");
  EXPECT_EQ((1 + s0).text(), "s0 + 1");
  EXPECT_EQ((s0 - 1).text(), "s0 - 1");
  EXPECT_EQ((5 - s0).text(), "5 - s0");
  EXPECT_EQ((-s0).text(), "-s0");
  EXPECT_EQ((s1 * s0 * 128).text(), "128*s0*s1");
  EXPECT_EQ((s0 * s0 * 4).text(), "4*s0**2");
  EXPECT_EQ(floordiv(s0, 2).text(), "(s0//2)");
  EXPECT_EQ(floordiv(s0 + 1, 2).text(), "((s0 + 1)//2)");
  EXPECT_EQ(floordiv(s0, floordiv(s0, 2)).text(), "(s0//(s0//2))");
  EXPECT_EQ((floordiv(s0, 2) * floordiv(s0, floordiv(s0, 2))).text(), "(s0//2)*(s0//(s0//2))");
  EXPECT_EQ(mod(s0 * s1, 5).text(), "Mod(s0*s1, 5)");
  EXPECT_EQ(max(u0, 1).text(), "Max(1, u0)");
  EXPECT_EQ(min(s1, s0).text(), "Min(s0, s1)");
  EXPECT_EQ(where(Condition::eq(s0, 3), 1, 0).text(), "Where(s0 == 3, 1, 0)");
  EXPECT_EQ((Expr::symbol("s10") + Expr::symbol("s2")).text(), "s2 + s10");
}

TEST(Expr, EqualPolynomialsAreEqual) {
  EXPECT_EQ(s0 + s1 - s0, s1);
  EXPECT_EQ(s0 - s0, 0);
  EXPECT_EQ((s0 + 1) * (s0 - 1), s0 * s0 - 1);
  EXPECT_EQ(3072 * s1 * (s0 - 1) + 3072 * s1, 3072 * s0 * s1);
  EXPECT_NE(s0, s1);
  EXPECT_NE(s0, 3);
  EXPECT_EQ(power(s0 + 1, 2), s0 * s0 + 2 * s0 + 1);
  EXPECT_EQ(power(s0, 0), 1);
}

TEST(Expr, DivisionsSimplify) {
  EXPECT_EQ(floordiv(16 * s0, 4), 4 * s0);
  EXPECT_EQ(mod(16 * s0, 4), 0);
  EXPECT_EQ(floordiv(16 * s0 + 5, 4), 4 * s0 + 1);
  EXPECT_EQ(mod(16 * s0 + 5, 4), 1);
  EXPECT_EQ(floordiv(s0 * s1, s1), s0);
  EXPECT_EQ(floordiv(s0 * s0 - 1, s0 + 1), s0 - 1);
  EXPECT_EQ(mod(s0 * s0 - 1, s0 + 1), 0);
  EXPECT_EQ(floordiv(s0 * s1 * 6, s1 * 4), floordiv(3 * s0, 2));
  EXPECT_EQ(floordiv(floordiv(s0, 2), 3), floordiv(s0, 6));
  EXPECT_EQ(floordiv(floordiv(s0 - 1, 2) + 1, 2), floordiv(s0 + 1, 4));
  EXPECT_EQ(floordiv(s0, -2), floordiv(-s0, 2));
  EXPECT_EQ(mod(6 * s0, 4), 2 * mod(s0, 2));
  EXPECT_EQ(mod(mod(s0, 6), 3), mod(s0, 3));
  EXPECT_EQ(mod(5 * s0 + s1 * s0, s0), 0);
  EXPECT_EQ(mod(s0, 1), 0);
  EXPECT_EQ(floordiv(0, s0), 0);
  EXPECT_EQ(floordiv(s0 * s1 * kLeast + s1, s0), s1 * kLeast + floordiv(s1, s0));
  EXPECT_EQ(mod(s0 * s1 * kLeast + s1, s0), mod(s1, s0));
}

TEST(Expr, NumbersDivideAsInPython) {
  EXPECT_EQ(floordiv(7, 2), 3);
  EXPECT_EQ(floordiv(-7, 2), -4);
  EXPECT_EQ(floordiv(7, -2), -4);
  EXPECT_EQ(floordiv(-7, -2), 3);
  EXPECT_EQ(mod(7, 3), 1);
  EXPECT_EQ(mod(-7, 3), 2);
  EXPECT_EQ(mod(7, -3), -2);
  EXPECT_EQ(mod(-7, -3), -1);
  EXPECT_EQ(mod(kLeast, -1), 0);
}

TEST(Expr, ExtremesDropWhatNeverWins) {
  EXPECT_EQ(max(s0, s0), s0);
  EXPECT_EQ(max(s0, s0 + 1), s0 + 1);
  EXPECT_EQ(min(s0 + 3, s0), s0);
  EXPECT_EQ(max(max(s0, 1), max(2, s1)), max(s1, max(s0, 2)));
  EXPECT_EQ(max(3, 4), 4);
  EXPECT_EQ(where(true, s0, s1), s0);
  EXPECT_EQ(where(false, s0, s1), s1);
}

TEST(Expr, SymbolsAreSubstituted) {
  const Expr e = floordiv(s0 * s1, 3) + max(u0, s0);
  EXPECT_THAT(e.symbols(), ElementsAre("s0", "s1", "u0"));
  EXPECT_THAT(Expr(3).symbols(), IsEmpty());
  EXPECT_TRUE(e.has_symbol("u0"));
  EXPECT_FALSE(e.has_symbol("u1"));
  const Expr with_s1 = e.substitute([](const std::string& name) -> std::optional<Expr> {
    if (name == "s0") return 3 * s1;
    return std::nullopt;
  });
  EXPECT_EQ(with_s1, s1 * s1 + max(u0, 3 * s1));
  EXPECT_EQ(e.evaluate([](const std::string&) { return std::nullopt; }), std::nullopt);
}

TEST(Expr, LimitsAreErrorsOfTheirOwn) {
  EXPECT_THROW(Expr(kGreatest) + 1, OverflowError);
  EXPECT_THROW(Expr(kLeast) * -1, OverflowError);
  EXPECT_THROW(-Expr(kLeast), OverflowError);
  EXPECT_THROW(floordiv(kLeast, -1), OverflowError);
  EXPECT_THROW(s0 * kGreatest * 2, OverflowError);
  EXPECT_EQ(s0 * kLeast + s0 * kGreatest, -s0);
  EXPECT_THROW(floordiv(s0, 0), DivisionByZero);
  EXPECT_THROW(mod(3, 0), DivisionByZero);
  EXPECT_THROW(power(s0, -1), ShapeError);
  EXPECT_THROW((s0 * 2).evaluate([](const std::string&) { return kLeast; }), OverflowError);
  Expr deep = s0;
  EXPECT_THROW(for (int i = 0; i < 1000; ++i) deep = max(floordiv(deep, s1), s1), ExpressionTooLarge);
  Expr wide = 0;
  EXPECT_THROW(for (int i = 0; i < 5000; ++i) wide = wide + Expr::symbol("s" + std::to_string(i)), ExpressionTooLarge);
  Expr doubled = s0;
  EXPECT_THROW(for (int i = 0; i < 100; ++i) doubled = floordiv(doubled * doubled + 1, doubled + 3),
               ExpressionTooLarge);
  EXPECT_THROW(Expr::symbol("zf0"), ShapeError);
  EXPECT_THROW(Expr::symbol("s"), ShapeError);
  EXPECT_THROW(s0.number(), ShapeError);
  EXPECT_THROW((s0 + 1).symbol_name(), ShapeError);
}

// (x^101 - 1) / (x - 1) would repeat x, which has 1,001 factors, in each of 101 terms.
TEST(Expr, QuotientThatIsTooLarge_StaysADivision) {
  Expr sum = 0;
  for (int i = 0; i < 1000; ++i) sum = sum + Expr::symbol("s" + std::to_string(i));
  const Expr x = max(sum, u0);
  const Expr quotient = floordiv(power(x, 101) - 1, x - 1);
  EXPECT_EQ(quotient.evaluate([](const std::string&) { return -1; }), 1);
}

TEST(ParseExpr, ReadsWhatExportWrites) {
  EXPECT_EQ(parse_expr("3*(((((s0//2))*((s0//((s0//2)))))//3))"),
            3 * floordiv(floordiv(s0, 2) * floordiv(s0, floordiv(s0, 2)), 3));
  EXPECT_EQ(parse_expr("3072*s1*(s0 - 1) + 3072*s1"), 3072 * s0 * s1);
  EXPECT_EQ(parse_expr("4*s0**2"), 4 * s0 * s0);
  EXPECT_EQ(parse_expr("PythonMod(s0, 4) % 3"), mod(mod(s0, 4), 3));
  EXPECT_EQ(parse_expr("FloorDiv(s0, 2) - -3"), floordiv(s0, 2) + 3);
  EXPECT_EQ(parse_expr("-2**2"), -4);
  EXPECT_EQ(parse_expr("-s0**2"), -(s0 * s0));
  EXPECT_EQ(parse_expr(" Max( 1 , u0 ) "), max(1, u0));
  EXPECT_EQ(parse_expr(Expr(kLeast).text()), Expr(kLeast));
  EXPECT_EQ(parse_expr((s1 + s0 * kLeast).text()), s1 + s0 * kLeast);
  EXPECT_EQ(parse_expr((s0 + s1 * kLeast).text()), s0 + s1 * kLeast);
}

TEST(ParseExpr, RefusesWhatIsNoIntegerExpression) {
  for (const char* text : {"",         "s",      "zf0",
                           "2.5",      "s0/2",   "s0 +",
                           "(s0",      "s0)",    "s0 >= 2",
                           "log2(s0)", "Max()",  "s0 s1",
                           "1e3",      "s0//0",  "99999999999999999999",
                           "s0**-1",   "s0**s1", "Mod(s0)",
                           "~s0",      "True",   "s0 + (s0 >= 2)"}) {
    EXPECT_EQ(parse_expr(text), std::nullopt) << text;
  }
  EXPECT_EQ(parse_expr(std::string(100000, '(')), std::nullopt);
  EXPECT_EQ(parse_expr(std::string(100000, '-') + "1"), std::nullopt);
}

TEST(SymbolNames, UnbackedOnesAreKnown) {
  for (const char* name : {"u0", "u12", "zuf0"}) EXPECT_TRUE(is_unbacked_name(name)) << name;
  for (const char* name : {"s0", "zf0", "ux0", "zu1", "", "0"}) EXPECT_FALSE(is_unbacked_name(name)) << name;
}

}  // namespace
}  // namespace rehearse::shapes
