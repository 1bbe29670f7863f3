// SPDX-License-Identifier: BSD-3-Clause
// Scalars, texts and containers as arguments. recompile_test.cpp says where the expected numbers and the names of the
// tests come from.
#include <map>
#include <optional>
#include <string>

#include <gmock/gmock.h>

#include "core/compile/recompile_counts.h"

namespace rehearse::compiler {
namespace {

using ::testing::ElementsAre;

template <class T>
std::vector<std::tuple<at::Tensor, T>> with_each(const std::vector<T>& values) {
  std::vector<std::tuple<at::Tensor, T>> calls;
  for (const T& value : values) calls.emplace_back(at::full({4, 8}, 2.0), value);
  return calls;
}

std::vector<std::tuple<at::Tensor, c10::SymInt>> sym_ints(const std::vector<std::int64_t>& values) {
  return with_each(std::vector<c10::SymInt>(values.begin(), values.end()));
}

at::Tensor times(const at::Tensor& x, c10::SymInt k) { return x * at::Scalar(k); }

TEST(RecompileScalars, IntScalarMul) {
  auto compiled = compile(times);
  EXPECT_THAT(compiles(compiled, times, sym_ints({3, 3, 4, 5, 6})), ElementsAre(1, 0, 1, 0, 0));
}
TEST(RecompileScalars, IntScalarNeg) {
  auto compiled = compile(times);
  EXPECT_THAT(compiles(compiled, times, sym_ints({5, 6, -1, -2})), ElementsAre(1, 1, 0, 0));
}
TEST(RecompileScalars, IntScalarDynamicTrue) {
  auto compiled = compile(times, {.dynamic = true});
  EXPECT_THAT(compiles(compiled, times, sym_ints({3, 4, 1, 0})), ElementsAre(1, 0, 0, 0));
}

at::Tensor plus_ones(const at::Tensor& x, c10::SymInt k) { return x.sum() + at::ones_symint({k}).sum(); }

TEST(RecompileScalars, IntAsSize) {
  auto compiled = compile(plus_ones);
  EXPECT_THAT(compiles(compiled, plus_ones, sym_ints({3, 3, 7})), ElementsAre(1, 0, 1));
}
TEST(RecompileScalars, IntAsSizeRank1) {
  auto compiled = compile(plus_ones);
  EXPECT_THAT(compiles(compiled, plus_ones, sym_ints({3, 4, 9})), ElementsAre(1, 1, 0));
}
TEST(RecompileScalars, IntBranch) {
  const auto branch = [](const at::Tensor& x, c10::SymInt k) { return k > 5 ? x * 2 : x + 1; };
  auto compiled = compile(branch);
  EXPECT_THAT(compiles(compiled, branch, sym_ints({3, 4, 6, 7, 5})), ElementsAre(1, 1, 1, 0, 0));
}

// Guards compare a plain integer by value. Use a c10::SymInt for an integer that may become dynamic.
TEST(RecompileScalars, PlainIntegersAreGuardedByValue) {
  const auto scaled = [](const at::Tensor& x, std::int64_t k) { return x * k; };
  auto compiled = compile(scaled);
  EXPECT_THAT(compiles(compiled, scaled, with_each<std::int64_t>({3, 3, 4, 5, 4})), ElementsAre(1, 0, 1, 1, 0));
}
// PyTorch has the same numbers for another reason. It makes a float dynamic at its second value. Here a double is never
// dynamic.
TEST(RecompileScalars, DoublesAreGuardedByValue) {
  const auto scaled = [](const at::Tensor& x, double k) { return x * k; };
  auto compiled = compile(scaled);
  EXPECT_THAT(compiles(compiled, scaled, with_each<double>({1.5, 2.5, 1.5})), ElementsAre(1, 1, 0));
}
TEST(RecompileScalars, BoolScalar) {
  const auto branch = [](const at::Tensor& x, bool k) { return k ? x * 2 : x + 1; };
  auto compiled = compile(branch);
  EXPECT_THAT(compiles(compiled, branch, with_each<bool>({true, false, true})), ElementsAre(1, 1, 0));
}
TEST(RecompileScalars, StrArg) {
  const auto branch = [](const at::Tensor& x, const std::string& k) { return k == "a" ? x * 2 : x + 1; };
  auto compiled = compile(branch);
  EXPECT_THAT(compiles(compiled, branch, with_each<std::string>({"a", "b", "a"})), ElementsAre(1, 1, 0));
}
TEST(RecompileScalars, NoneVsTensor) {
  const auto maybe = [](const at::Tensor& x, const std::optional<at::Tensor>& y) { return y ? x + *y : x * 2; };
  auto compiled = compile(maybe);
  EXPECT_THAT(
      compiles(compiled, maybe, with_each<std::optional<at::Tensor>>({std::nullopt, at::ones({4, 8}), std::nullopt})),
      ElementsAre(1, 1, 0));
}
TEST(RecompileScalars, ListSameTensorAlias) {
  const auto sum = [](const std::vector<at::Tensor>& xs) { return xs[0] + xs[1]; };
  auto compiled = compile(sum);
  const at::Tensor x = at::ones({4}), y = at::ones({4});
  const std::vector<std::tuple<std::vector<at::Tensor>>> calls = {
      {std::vector{x, x}}, {std::vector{x, y}}, {std::vector{y, y}}};
  EXPECT_THAT(compiles(compiled, sum, calls), ElementsAre(1, 1, 0));
}
TEST(RecompileScalars, DictKeys) {
  using Named = std::map<std::string, at::Tensor>;
  const auto sum = [](const Named& named) {
    at::Tensor sum = at::zeros({4});
    for (const auto& [name, tensor] : named) sum = sum + tensor;
    return sum;
  };
  auto compiled = compile(sum);
  const at::Tensor x = at::ones({4});
  const std::vector<std::tuple<Named>> calls = {
      {Named{{"a", x}}}, {Named{{"a", x}, {"b", at::ones({4})}}}, {Named{{"a", x}}}};
  EXPECT_THAT(compiles(compiled, sum, calls), ElementsAre(1, 1, 0));
}

// Guards compare sizes only of the element that the code uses (seed test test_compiler_collectives_missing_source).
TEST(RecompileScalars, UntouchedTensorsAreNotGuardedBySize) {
  const auto pick = [](const std::vector<at::Tensor>& xs) { return xs[1].sum(); };
  auto compiled = compile(pick);
  const auto list = [](std::int64_t a, std::int64_t b) {
    return std::tuple(std::vector{at::ones({a}), at::ones({b})});
  };
  const std::vector<std::tuple<std::vector<at::Tensor>>> calls = {list(3, 4), list(5, 4), list(5, 6), list(7, 8)};
  EXPECT_THAT(compiles(compiled, pick, calls), ElementsAre(1, 0, 1, 0));
}

// Guards also compare a size that only a condition in the code reads.
TEST(RecompileScalars, SizesThatOnlyTheCodeReadsAreGuarded) {
  const auto branch = [](const at::Tensor& x, const at::Tensor& y) { return y.size(0) == 4 ? x * 2 : x + 1; };
  auto compiled = compile(branch);
  const at::Tensor x = at::ones({2});
  const std::vector<std::tuple<at::Tensor, at::Tensor>> calls = {
      {x, at::ones({4})}, {x, at::ones({5})}, {x, at::ones({4})}};
  EXPECT_THAT(compiles(compiled, branch, calls), ElementsAre(1, 1, 0));
}

}  // namespace
}  // namespace rehearse::compiler
