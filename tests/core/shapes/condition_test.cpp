// SPDX-License-Identifier: BSD-3-Clause
// Canonical forms and texts of conditions.
#include <rehearse/shapes/condition.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/shapes/errors.h>

#include "core/shapes/any_expr.h"

namespace rehearse::shapes {
namespace {

using testing::ElementsAre;

TEST(Condition, ComparisonsHaveOneForm) {
  EXPECT_EQ(Condition::gt(2 * s0, 6), Condition::ge(s0, 4));
  EXPECT_EQ(Condition::lt(s0, s1), Condition::ge(s1, s0 + 1));
  EXPECT_EQ(Condition::eq(2 * s0, 16), Condition::eq(8, s0));
  EXPECT_EQ(~Condition::lt(s0, 4), Condition::ge(s0, 4));
  EXPECT_EQ(~Condition::eq(s0, 4), Condition::ne(s0, 4));
  EXPECT_TRUE(Condition::eq(2 * s0, 5).is_false());
  EXPECT_TRUE(Condition::ne(2 * s0, 5).is_true());
  EXPECT_TRUE(Condition::le(s0, s0).is_true());
  EXPECT_TRUE(Condition::lt(s0, s0).is_false());
}

TEST(Condition, TextPutsSumsOnTheSideWhereTheyArePositive) {
  EXPECT_EQ(Condition::eq(s0, 8).text(), "s0 == 8");
  EXPECT_EQ(Condition::ne(s0, s1).text(), "s0 != s1");
  EXPECT_EQ(Condition::gt(s0, 4).text(), "s0 >= 5");
  EXPECT_EQ(Condition::le(u0, 128).text(), "u0 <= 128");
  EXPECT_EQ(Condition::ge(u0, 0).text(), "u0 >= 0");
  EXPECT_EQ(Condition::ge(s0, s1).text(), "s1 <= s0");
  EXPECT_EQ(Condition::eq(mod(16 * s0, 5), 0).text(), "Mod(s0, 5) == 0");
  EXPECT_EQ((Condition::ge(s0, 2) & Condition::eq(s1, 3)).text(), "(s1 == 3) & (s0 >= 2)");
  EXPECT_EQ((Condition::ge(s0, 2) | Condition::eq(s1, 3)).text(), "(s1 == 3) | (s0 >= 2)");
  EXPECT_EQ(Condition(true).text(), "True");
}

TEST(Condition, AndOrNotFold) {
  const Condition a = Condition::eq(s0, 3);
  const Condition b = Condition::ge(s1, 4);
  const Condition c = Condition::ne(u0, s0);
  EXPECT_EQ(a & true, a);
  EXPECT_TRUE((a & false).is_false());
  EXPECT_TRUE((true | a).is_true());
  EXPECT_EQ(false | a, a);
  EXPECT_EQ(a & a, a);
  EXPECT_EQ((a & b) & c, c & (b & a));
  EXPECT_TRUE((a & ~a).is_false());
  EXPECT_TRUE((b | ~b).is_true());
  EXPECT_EQ(~(a & b), ~a | ~b);
  EXPECT_EQ(~~(a | (b & c)), a | (b & c));
  EXPECT_THAT((a & (b | c)).symbols(), ElementsAre("s0", "s1", "u0"));
}

TEST(Condition, EvaluatesAsFarAsSymbolsAreKnown) {
  const ValueOf only_s0 = [](const std::string& name) -> std::optional<std::int64_t> {
    if (name == "s0") return 3;
    return std::nullopt;
  };
  const Condition known = Condition::eq(s0, 3);
  const Condition unknown = Condition::ge(u0, 4);
  EXPECT_EQ(known.evaluate(only_s0), true);
  EXPECT_EQ(unknown.evaluate(only_s0), std::nullopt);
  EXPECT_EQ((known | unknown).evaluate(only_s0), true);
  EXPECT_EQ((known & unknown).evaluate(only_s0), std::nullopt);
  EXPECT_EQ((~known & unknown).evaluate(only_s0), false);
}

TEST(Condition, PartsOfOtherKindsAreRefused) {
  EXPECT_THROW(Condition(true).expr(), ShapeError);
  EXPECT_THROW(Condition::eq(s0, 3).operands(), ShapeError);
}

TEST(ParseCondition, ReadsWhatExportWrites) {
  EXPECT_EQ(parse_condition("u0 <= 128"), Condition::le(u0, 128));
  EXPECT_EQ(parse_condition("Eq(s0, 8)"), Condition::eq(s0, 8));
  EXPECT_EQ(parse_condition("Ne(s0, 8)"), Condition::ne(s0, 8));
  EXPECT_EQ(parse_condition("~(s0 > s1)"), Condition::le(s0, s1));
  EXPECT_EQ(parse_condition("(s0 >= 3) & (s1 < 2) | True"), Condition(true));
  EXPECT_EQ(parse_condition("And(Eq(s0, 8), Not(u0 >= 3), s1 == 3)"),
            Condition::eq(s0, 8) & Condition::lt(u0, 3) & Condition::eq(s1, 3));
  for (const char* text : {"", "s0", "s0 = 3", "s0 <", "Eq(s0)", "(s0 >= 2) + 1", "s0 & s1", "Not(s0)", "~3"}) {
    EXPECT_EQ(parse_condition(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace rehearse::shapes
