// SPDX-License-Identifier: BSD-3-Clause
// Symbolic numbers of graphs: expressions of core/shapes if possible, and texts if not.
#include <rehearse/graph/sym_expr.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/graph/metadata.h>

namespace rehearse::graph {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(SymExpr, IntegersAndConditionsAreThoseOfShapes) {
  const shapes::Expr s0 = shapes::Expr::symbol("s0");
  EXPECT_EQ(SymExpr("s0*2"), SymExpr(2 * s0));
  EXPECT_EQ(SymExpr("3072*s1*(s0 - 1) + 3072*s1").text(), "3072*s0*s1");
  EXPECT_EQ(*SymExpr("((s0//2))").expr(), floordiv(s0, 2));
  EXPECT_EQ(*SymExpr("Eq(s0, 3)").condition(), shapes::Condition::eq(s0, 3));
  EXPECT_EQ(SymExpr("s0 > 2").text(), "s0 >= 3");
  EXPECT_EQ(SymExpr("s0").expr()->symbol_name(), "s0");
  EXPECT_EQ(SymExpr("s0").condition(), nullptr);
  EXPECT_EQ(SymExpr("True").expr(), nullptr);
}

TEST(SymExpr, OtherTextsStayAsTheyAre) {
  for (const char* text : {"zf0", "2.0*zf0", "log2(s0)", "s0/2", "", "  x", "CeilToInt(IntTrueDiv(s0, 2))", "(s0"}) {
    const SymExpr expression(text);
    EXPECT_EQ(expression.text(), text);
    EXPECT_EQ(expression.expr(), nullptr) << text;
    EXPECT_EQ(expression.condition(), nullptr) << text;
    EXPECT_EQ(expression, SymExpr(expression.text()));
  }
  EXPECT_NE(SymExpr("zf0"), SymExpr("zf1"));
  EXPECT_NE(SymExpr("zf0"), SymExpr("s0"));
}

TEST(SymExpr, KnowsItsSymbols) {
  EXPECT_THAT(SymExpr("((s0//2))*((s0//((s0//2))))").symbols(), ElementsAre("s0"));
  EXPECT_THAT(SymExpr("u1 + 2*s10 - s2").symbols(), ElementsAre("s10", "s2", "u1"));
  EXPECT_THAT(SymExpr("Max(1, s3) >= Mod(zf0, 4)").symbols(), ElementsAre("s3", "zf0"));
  EXPECT_THAT(SymExpr("u7 >= s1").symbols(), ElementsAre("s1", "u7"));
  EXPECT_THAT(SymExpr("log2(u0) + 0x1 + S1 + _s2").symbols(), ElementsAre("u0"));
  EXPECT_THAT(SymExpr("512").symbols(), IsEmpty());
  EXPECT_THAT(SymExpr("").symbols(), IsEmpty());
  EXPECT_EQ(*SymExpr("s0").symbol(), "s0");
  EXPECT_EQ(*SymExpr("zf0").symbol(), "zf0");
  for (const char* text : {"2*s0", "s0 >= 2", "log2(s0)", "", "12"}) EXPECT_EQ(SymExpr(text).symbol(), nullptr) << text;
}

TEST(SymInt, IsANumberWhereTheExpressionIsOne) {
  EXPECT_EQ(SymInt(SymExpr("2*3")), SymInt(6));
  EXPECT_FALSE(SymInt(SymExpr("s0 - s0")).is_symbolic());
  EXPECT_TRUE(SymInt(shapes::Expr::symbol("s0")).is_symbolic());
  EXPECT_EQ(to_string(SymInt(SymExpr("1 + s0"))), "s0 + 1");
  EXPECT_THROW(SymInt(3).expression(), std::bad_variant_access);
}

}  // namespace
}  // namespace rehearse::graph
