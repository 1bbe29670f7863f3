// SPDX-License-Identifier: BSD-3-Clause
// A ShapeEnv records the questions that real c10::SymInt arithmetic and ATen's helpers ask.
#include <rehearse_internal/shapes/shape_env.h>

#include <ATen/ExpandUtils.h>
#include <ATen/InferSize.h>
#include <ATen/TensorUtils.h>
#include <ATen/ops/empty.h>
#include <c10/core/SymFloat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/shapes/errors.h>
#include <rehearse_internal/shapes/sym_node.h>

#include "core/shapes/any_expr.h"

namespace rehearse::shapes {
namespace {

using c10::SymInt;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> texts(const std::vector<Guard>& guards) {
  std::vector<std::string> result;
  for (const Guard& guard : guards) result.push_back(guard.condition.text());
  return result;
}

std::vector<std::string> texts(c10::SymIntArrayRef sizes) {
  std::vector<std::string> result;
  for (const SymInt& size : sizes) result.push_back(text_of(size));
  return result;
}

struct ShapeEnvTest : testing::Test {
  std::shared_ptr<ShapeEnv> env = ShapeEnv::make();
};

TEST_F(ShapeEnvTest, ZeroAndOneAreNumbers) {
  EXPECT_EQ(env->add_backed(0, "x.size(0)").maybe_as_int(), 0);
  EXPECT_EQ(env->add_backed(1, "x.size(1)").maybe_as_int(), 1);
  EXPECT_THAT(env->backed(), IsEmpty());
  EXPECT_EQ(text_of(env->add_backed_int(1, "n")), "s0");
  EXPECT_THROW(env->add_backed(-1, "x.size(0)"), ShapeError);
}

TEST_F(ShapeEnvTest, EqualHintsShareASymbol) {
  const SymInt a = env->add_backed(8, "x.size(0)");
  const SymInt b = env->add_backed(16, "x.size(1)");
  const SymInt c = env->add_backed(8, "y.size(0)");
  const SymInt n = env->add_backed_int(8, "n");
  EXPECT_THAT(texts({a, b, c, n}), ElementsAre("s0", "s1", "s0", "s2"));
  ASSERT_EQ(env->backed().size(), 3u);
  EXPECT_THAT(env->backed()[0].sources, ElementsAre("x.size(0)", "y.size(0)"));
  EXPECT_EQ(env->backed()[1].hint, 16);
  EXPECT_EQ(env->find_backed("s2"), &env->backed()[2]);
  EXPECT_EQ(env->find_backed("u0"), nullptr);
  EXPECT_EQ(env->backed()[0].range, (Range{2, Range::kUnboundedAbove}));
  EXPECT_EQ(env->backed()[2].range, Range());
  std::vector<std::string> sources;
  for (const SymbolSource& source : env->sources()) sources.push_back(source.text + std::to_string(source.symbol));
  EXPECT_THAT(sources, ElementsAre("x.size(0)0", "x.size(1)1", "y.size(0)0", "n2"));

  const auto apart = ShapeEnv::make({.duck_shaping = false});
  const SymInt first = apart->add_backed(8, "x.size(0)");
  EXPECT_THAT(texts({first, apart->add_backed(8, "y.size(0)")}), ElementsAre("s0", "s1"));
}

TEST_F(ShapeEnvTest, ArithmeticOfSymIntsIsThatOfExpressions) {
  const SymInt a = env->add_backed(8, "x.size(0)");
  const SymInt b = env->add_backed(6, "x.size(1)");
  EXPECT_EQ(expr_of(a * b + 4 - a), s0 * s1 + 4 - s0);
  EXPECT_EQ(expr_of((a * 16) / 4), 4 * s0);
  EXPECT_EQ((a * 16 % 4).maybe_as_int(), 0);
  EXPECT_EQ((a - a).maybe_as_int(), 0);
  EXPECT_EQ(expr_of(a.max(1)), s0);
  EXPECT_EQ(expr_of(a.min(b)), min(s0, s1));
  EXPECT_EQ(expr_of(-a), -s0);
  EXPECT_EQ(expr_of(a + std::numeric_limits<std::int64_t>::min()), s0 + Expr(std::numeric_limits<std::int64_t>::min()));
  EXPECT_EQ(expr_of(a.sym_gt(b).toSymInt()), where(Condition::gt(s0, s1), 1, 0));
  EXPECT_FALSE((a - a).is_symbolic());
  EXPECT_TRUE(a.is_symbolic());
  EXPECT_TRUE(a.has_hint());
  EXPECT_THAT(env->guards(), IsEmpty());
}

TEST_F(ShapeEnvTest, WhatIsKnownRecordsNothing) {
  const SymInt a = env->add_backed(8, "x.size(0)");
  const SymInt b = env->add_backed(6, "x.size(1)");
  EXPECT_TRUE(a != 1);
  EXPECT_TRUE(a * b > a);
  EXPECT_FALSE(a * 3 == 0);
  EXPECT_TRUE(a + 1 == 1 + a);
  EXPECT_TRUE(a / 2 <= a);
  EXPECT_THAT(env->guards(), IsEmpty());
}

TEST_F(ShapeEnvTest, OthersBecomeGuardsOnce) {
  const SymInt a = env->add_backed(8, "x.size(0)");
  EXPECT_TRUE(a > 4);
  EXPECT_FALSE(a >= 10);
  EXPECT_TRUE(a > 3);
  EXPECT_TRUE(a * 2 % 3 == 1);
  EXPECT_TRUE(a * 2 % 3 == 1);
  EXPECT_THAT(texts(env->guards()), ElementsAre("s0 >= 5", "s0 <= 9", "Mod(2*s0, 3) == 1"));
  EXPECT_THAT(env->guards()[0].reason, HasSubstr("SymInt.h:"));
  EXPECT_FALSE(env->guards()[0].where.empty());
  EXPECT_FALSE(env->guards()[0].specialises);
}

TEST_F(ShapeEnvTest, EqualSymbolsBecomeOne) {
  const SymInt a = env->add_backed(8, "x.size(0)");
  const SymInt b = env->add_backed_int(8, "n");
  EXPECT_TRUE(a == b);
  EXPECT_THAT(texts(env->guards()), ElementsAre("s0 == s1"));
  EXPECT_EQ(expr_of(b * 2), 2 * s0);
  EXPECT_TRUE(b >= 2);
  EXPECT_EQ(env->guards().size(), 1u);
}

// Whoever infers shapes with a kernel for plain sizes must learn that it cannot run. Since 2.14, LibTorch would fix the
// sizes instead.
TEST_F(ShapeEnvTest, PlainSizesOfATensor_AreAnErrorAndFixNothing) {
  const SymInt a = env->add_backed(8, "x.size(0)");
  const at::Tensor tensor = at::empty_symint({a, 2}, at::TensorOptions(at::kMeta));
  EXPECT_THROW(static_cast<void>(tensor.sizes()), c10::Error);
  EXPECT_EQ(tensor.sym_size(0).maybe_as_int(), std::nullopt);
  for (const auto& guard : env->guards()) EXPECT_FALSE(guard.specialises) << guard.reason;
}

TEST_F(ShapeEnvTest, ReadingANumberFixesTheSize) {
  const SymInt a = env->add_backed(8, "x.size(0)");
  const SymInt b = env->add_backed(6, "x.size(1)");
  EXPECT_EQ((a + 1).guard_int("/build/aten/src/ATen/core/TensorBase.h", 12), 9);
  ASSERT_THAT(texts(env->guards()), ElementsAre("s0 == 8"));
  EXPECT_TRUE(env->guards()[0].specialises);
  EXPECT_EQ(env->guards()[0].reason, "fixed to 9: read as a plain number at TensorBase.h:12");
  EXPECT_EQ(a.maybe_as_int(), 8);
  EXPECT_EQ(expr_of(a * b), 8 * s1);
  EXPECT_EQ(a.guard_int("f", 1), 8);
  EXPECT_EQ(env->guards().size(), 1u);
}

TEST_F(ShapeEnvTest, QuestionsAboutUnbackedSymbolsAreErrors) {
  const SymInt u = env->add_unbacked();
  EXPECT_FALSE(u.has_hint());
  EXPECT_TRUE(u >= 0);
  EXPECT_TRUE(u * 3 + 1 > 0);
  try {
    static_cast<void>(u > 2);
    FAIL() << "not refused";
  } catch (const DataDependentError& error) {
    EXPECT_EQ(error.asked(), "u0 >= 3");
    EXPECT_FALSE(error.where().empty());
    EXPECT_THAT(error.what(), HasSubstr("'u0 >= 3'"));
    EXPECT_THAT(error.what(), HasSubstr("TORCH_SYM_CHECK"));
  }
  EXPECT_THROW(u.guard_int("f", 1), DataDependentError);
  EXPECT_FALSE(TORCH_GUARD_OR_FALSE(u.sym_eq(1)));
  EXPECT_TRUE(TORCH_GUARD_OR_TRUE(u.sym_eq(1)));
  EXPECT_FALSE(TORCH_STATICALLY_KNOWN_TRUE(u.sym_eq(1)));
  EXPECT_FALSE(TORCH_GUARD_SIZE_OBLIVIOUS(u.sym_eq(1)));
  EXPECT_THAT(env->guards(), IsEmpty());
  EXPECT_THAT(env->asserts(), IsEmpty());
}

TEST_F(ShapeEnvTest, StatedFactsAreCheckedLaterAndNarrow) {
  const SymInt u = env->add_unbacked();
  const SymInt v = env->add_unbacked();
  TORCH_SYM_CHECK(u.sym_le(10), "at most ten");
  EXPECT_TRUE(u < 11);
  TORCH_SYM_CHECK(u.sym_ne(0), "some");
  EXPECT_TRUE(u >= 1);
  TORCH_SYM_CHECK(v.sym_eq(5), "five");
  EXPECT_EQ(v.maybe_as_int(), 5);
  EXPECT_EQ(env->range(Expr::symbol("u0")), (Range{1, 10}));
  EXPECT_THAT(texts(env->asserts()), ElementsAre("u0 <= 10", "u0 != 0", "u1 == 5"));
  EXPECT_THROW(TORCH_SYM_CHECK(u.sym_gt(10), "contradiction"), c10::Error);
  EXPECT_THAT(env->guards(), IsEmpty());
}

TEST_F(ShapeEnvTest, AnUnbackedSizeMayEqualAnExpression) {
  const SymInt a = env->add_backed(8, "x.size(0)");
  const SymInt u = env->add_unbacked();
  const SymInt v = env->add_unbacked();
  TORCH_SYM_CHECK((u + v).sym_eq(a * 2), "splits");
  EXPECT_EQ(expr_of(v + u), 2 * s0);
  EXPECT_TRUE(a * 2 - u >= 0);
  EXPECT_THAT(texts(env->asserts()), ElementsAre("2*s0 == u0 + u1"));
}

TEST_F(ShapeEnvTest, BroadcastingAsATenDoesIt) {
  const SymInt a = env->add_backed(8, "x.size(0)");
  const SymInt b = env->add_backed_int(8, "n");
  const std::vector<SymInt> left = {a, 1, 16};
  EXPECT_THAT(texts(at::infer_size_symint(left, std::vector<SymInt>{4, 16})), ElementsAre("s0", "4", "16"));
  EXPECT_THAT(env->guards(), IsEmpty());
  EXPECT_THAT(texts(at::infer_size_symint(left, std::vector<SymInt>{b, 1, 1})), ElementsAre("s0", "1", "16"));
  EXPECT_THAT(texts(env->guards()), testing::Contains("s0 == s1"));
  EXPECT_THROW(at::infer_size_symint(std::vector<SymInt>{a}, std::vector<SymInt>{7}), c10::Error);
}

TEST_F(ShapeEnvTest, ViewsInferTheirSize) {
  const SymInt a = env->add_backed(8, "x.size(0)");
  EXPECT_THAT(texts(at::infer_size_dv(std::vector<SymInt>{-1, 4}, a * 16)), ElementsAre("4*s0", "4"));
  EXPECT_THAT(env->guards(), IsEmpty());
  EXPECT_THAT(texts(at::infer_size_dv(std::vector<SymInt>{4, -1}, a * 3)), ElementsAre("4", "((3*s0)//4)"));
  EXPECT_THAT(texts(env->guards()), ElementsAre("Mod(3*s0, 4) == 0"));
}

TEST_F(ShapeEnvTest, StridesOfAViewAreComputed) {
  const SymInt a = env->add_backed(8, "x.size(0)");
  const std::vector<SymInt> sizes = {a, 4, 6};
  const std::vector<SymInt> strides = {24, 6, 1};
  const auto viewed = at::detail::computeStride(sizes, strides, c10::SymDimVector{a * 4, 6});
  ASSERT_TRUE(viewed.has_value());
  EXPECT_THAT(texts(*viewed), ElementsAre("6", "1"));
  const std::vector<SymInt> gaps = {48, 6, 1};
  EXPECT_FALSE(at::detail::computeStride(sizes, gaps, c10::SymDimVector{a * 4, 6}).has_value());
  EXPECT_THAT(env->guards(), IsEmpty());
}

TEST_F(ShapeEnvTest, FloatsOfSizesStaySymbolic) {
  const SymInt a = env->add_backed(8, "x.size(0)");
  const c10::SymFloat numel = a * 4;
  const c10::SymFloat scale = c10::SymFloat(2.0) / (numel - 1.0);
  EXPECT_TRUE(scale.is_symbolic());
  EXPECT_EQ(scale.toSymNodeImpl()->str(), "FloatTrueDiv(2.0, (ToFloat(4*s0) - 1.0))");
  EXPECT_TRUE(numel > c10::SymFloat(3.0));
  EXPECT_THAT(env->guards(), IsEmpty());
  EXPECT_EQ(scale.guard_float("f.h", 3), 2.0 / 31.0);
  EXPECT_THAT(texts(env->guards()), ElementsAre("s0 == 8"));
}

// The backward of a variance asks whether there are more elements than the correction subtracts.
TEST_F(ShapeEnvTest, WholeFloatsCompareAsIntegers) {
  const c10::SymFloat numel = env->add_backed(8, "x.size(0)") * env->add_backed(6, "x.size(1)");
  EXPECT_TRUE(numel - c10::SymFloat(1.0) > c10::SymFloat(0.0));
  EXPECT_FALSE(c10::SymFloat(1.0) >= numel);
  EXPECT_THAT(env->guards(), IsEmpty());
  EXPECT_TRUE((numel + numel).min(c10::SymFloat(200.0)) >= c10::SymFloat(90.0));
  EXPECT_THAT(texts(env->guards()), ElementsAre("Min(200, 2*s0*s1) >= 90"));
  EXPECT_TRUE(numel > c10::SymFloat(2.5));
  EXPECT_THAT(env->guards().back().specialises, true);
}

TEST_F(ShapeEnvTest, FloatsOfUnbackedSizesAreNotRead) {
  const c10::SymFloat size = env->add_unbacked();
  EXPECT_THROW(size.guard_float("f.h", 3), DataDependentError);
  EXPECT_THROW(static_cast<void>(size.sqrt() > c10::SymFloat(2.5)), DataDependentError);
}

TEST_F(ShapeEnvTest, SymbolsOfTwoCapturesStaySeparate) {
  const SymInt a = env->add_backed(8, "x.size(0)");
  const auto other = ShapeEnv::make();
  const SymInt b = other->add_backed(8, "x.size(0)");
  EXPECT_THROW(a + b, ShapeError);
}

TEST_F(ShapeEnvTest, TextNamesEverything) {
  const SymInt a = env->add_backed(8, "x.size(0)");
  env->add_backed(8, "y.size(0)");
  static_cast<void>(a.sym_gt(4).guard_bool("a/f.h", 3));
  TORCH_SYM_CHECK(env->add_unbacked().sym_lt(a), "fits");
  EXPECT_THAT(env->text(),
              testing::StartsWith("s0 = 8  x.size(0), y.size(0)\nguard s0 >= 5  f.h:3\nassert u0 <= s0 - 1"));
}

}  // namespace
}  // namespace rehearse::shapes
