// SPDX-License-Identifier: BSD-3-Clause
// Counts how often a function is compiled. If a scenario was also run with PyTorch 2.11, the expected numbers are
// PyTorch's, and the test has the scenario's name.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include <rehearse/compile/argument_sinks.h>

#include "core/compile/recompile_counts.h"

namespace rehearse::compiler {
namespace {

using ::testing::ElementsAre;

std::vector<std::tuple<at::Tensor>> batches(const std::vector<std::int64_t>& sizes, std::int64_t width = 8) {
  std::vector<std::tuple<at::Tensor>> calls;
  for (const std::int64_t size : sizes) calls.emplace_back(at::ones({size, width}));
  return calls;
}

at::Tensor doubled(const at::Tensor& x) { return x * 2; }

std::vector<int> compiles_of_doubled(const std::vector<std::tuple<at::Tensor>>& calls, CompileOptions options = {}) {
  auto compiled = compile(doubled, std::move(options));
  return compiles(compiled, doubled, calls);
}

TEST(Recompile, SameShape) { EXPECT_THAT(compiles_of_doubled(batches({4, 4, 4})), ElementsAre(1, 0, 0)); }
TEST(Recompile, Batch4567) { EXPECT_THAT(compiles_of_doubled(batches({4, 5, 6, 7})), ElementsAre(1, 1, 0, 0)); }
TEST(Recompile, Batch415) { EXPECT_THAT(compiles_of_doubled(batches({4, 1, 5, 6})), ElementsAre(1, 1, 1, 0)); }
TEST(Recompile, Batch145) { EXPECT_THAT(compiles_of_doubled(batches({1, 4, 5})), ElementsAre(1, 1, 0)); }
TEST(Recompile, Batch045) { EXPECT_THAT(compiles_of_doubled(batches({0, 4, 5})), ElementsAre(1, 1, 0)); }
TEST(Recompile, Batch4510) { EXPECT_THAT(compiles_of_doubled(batches({4, 5, 1, 0, 6})), ElementsAre(1, 1, 1, 1, 0)); }

// Calls a function of a `Held` with batches of 4, 5 and 6 rows. `hold` makes the argument.
template <class Held, class Hold>
std::vector<int> compiles_of_held(Hold hold) {
  const auto function = [](const Held& held) {
    at::Tensor sum = at::zeros({8});
    Held copy = held;
    for_each_value(
        copy, [&](const at::Tensor& x) { sum = sum + x.sum(0); },
        [&](const c10::SymInt& n) { sum = sum + at::ones_symint({n}).sum(); });
    return sum;
  };
  auto compiled = compile(function);
  std::vector<std::tuple<Held>> calls;
  for (const std::int64_t rows : {4, 5, 6}) calls.emplace_back(hold(rows));
  return compiles(compiled, function, calls);
}

// A tensor's size or a c10::SymInt becomes dynamic also inside of a std::optional, a std::variant or a container.
TEST(Recompile, Batch456_InAnotherType) {
  using Optional = std::optional<at::Tensor>;
  using Either = std::variant<std::int64_t, at::Tensor>;
  const auto batch = [](std::int64_t rows) { return at::ones({rows, 8}); };
  EXPECT_THAT(compiles_of_held<Optional>(batch), ElementsAre(1, 1, 0));
  EXPECT_THAT(compiles_of_held<Either>(batch), ElementsAre(1, 1, 0));
  EXPECT_THAT(compiles_of_held<std::optional<Either>>([&](auto rows) { return Either(batch(rows)); }),
              ElementsAre(1, 1, 0));
  EXPECT_THAT(compiles_of_held<std::vector<Optional>>([&](auto rows) { return std::vector<Optional>{batch(rows)}; }),
              ElementsAre(1, 1, 0));
  EXPECT_THAT((compiles_of_held<std::map<std::string, Either>>(
                  [&](auto rows) { return std::map<std::string, Either>{{"a", batch(rows)}}; })),
              ElementsAre(1, 1, 0));
  EXPECT_THAT(compiles_of_held<std::optional<c10::SymInt>>([](auto rows) { return c10::SymInt(rows); }),
              ElementsAre(1, 1, 0));
}
TEST(Recompile, BatchOfAnOptionalThatIsEmptyOnce) {
  const auto function = [](const std::optional<at::Tensor>& x) { return x ? *x * 2 : at::zeros({2}); };
  auto compiled = compile(function);
  EXPECT_THAT(compiles(compiled, function,
                       std::vector<std::tuple<std::optional<at::Tensor>>>{
                           {at::ones({4})}, {std::nullopt}, {at::ones({5})}, {std::nullopt}, {at::ones({6})}}),
              ElementsAre(1, 1, 1, 0, 0));
}

TEST(Recompile, TwoDimsOneAtATime) {
  EXPECT_THAT(compiles_of_doubled({{at::ones({4, 8})}, {at::ones({5, 8})}, {at::ones({5, 9})}, {at::ones({6, 10})}}),
              ElementsAre(1, 1, 1, 0));
}
TEST(Recompile, TwoDimsTogether) {
  EXPECT_THAT(compiles_of_doubled({{at::ones({4, 8})}, {at::ones({5, 9})}, {at::ones({6, 10})}}), ElementsAre(1, 1, 0));
}
TEST(Recompile, DynamicTrue) {
  EXPECT_THAT(compiles_of_doubled(batches({4, 5, 1, 2, 0}), {.dynamic = true}), ElementsAre(1, 0, 1, 0, 1));
}
TEST(Recompile, DynamicTrueFirst1) {
  EXPECT_THAT(compiles_of_doubled(batches({1, 4, 5}), {.dynamic = true}), ElementsAre(1, 1, 0));
}
TEST(Recompile, DynamicTrueSquareDuck) {
  EXPECT_THAT(compiles_of_doubled({{at::ones({4, 4})}, {at::ones({5, 5})}, {at::ones({5, 6})}, {at::ones({7, 8})}},
                                  {.dynamic = true}),
              ElementsAre(1, 0, 1, 0));
}
TEST(Recompile, AutomaticDynamicOff) {
  EXPECT_THAT(compiles_of_doubled(batches({4, 5, 6}), {.dynamic = false}), ElementsAre(1, 1, 1));
}

// Twelve sizes: eight compilations, then the function runs in eager mode. Existing entries still serve matching calls.
TEST(Recompile, LimitOfEight) {
  auto compiled = compile(doubled, {.dynamic = false});
  EXPECT_THAT(compiles(compiled, doubled, batches({2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 2})),
              ElementsAre(1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0));
  EXPECT_EQ(compiled.stats().eager_calls, 4);
  EXPECT_EQ(compiled.stats().hits, 1);
}

TEST(Recompile, DtypeChange) {
  EXPECT_THAT(
      compiles_of_doubled(
          {{at::ones({4, 8})}, {at::ones({4, 8}, at::kDouble)}, {at::ones({4, 8})}, {at::ones({4, 8}, at::kBFloat16)}}),
      ElementsAre(1, 1, 0, 1));
}
TEST(Recompile, DtypeThenBatch) {
  EXPECT_THAT(
      compiles_of_doubled(
          {{at::ones({4, 8})}, {at::ones({5, 8}, at::kDouble)}, {at::ones({6, 8})}, {at::ones({7, 8}, at::kDouble)}}),
      ElementsAre(1, 1, 1, 0));
}
TEST(Recompile, StrideTransposeSquare) {
  EXPECT_THAT(compiles_of_doubled({{at::ones({4, 4})}, {at::ones({4, 4}).t()}, {at::ones({4, 4})}}),
              ElementsAre(1, 1, 0));
}
TEST(Recompile, StrideTransposeRect) {
  EXPECT_THAT(compiles_of_doubled({{at::ones({4, 8})}, {at::ones({8, 4}).t()}, {at::ones({4, 8})}}),
              ElementsAre(1, 1, 0));
}
TEST(Recompile, StorageOffset) {
  const at::Tensor whole = at::ones({8, 8});
  EXPECT_THAT(compiles_of_doubled({{whole.slice(0, 0, 4)}, {whole.slice(0, 2, 6)}, {whole.slice(0, 4, 8)}}),
              ElementsAre(1, 0, 0));
}
TEST(Recompile, ChannelsLast) {
  EXPECT_THAT(compiles_of_doubled({{at::ones({2, 3, 4, 4})},
                                   {at::ones({2, 3, 4, 4}).contiguous(at::MemoryFormat::ChannelsLast)},
                                   {at::ones({3, 3, 4, 4})}}),
              ElementsAre(1, 1, 1));
}
TEST(Recompile, NdimChange) {
  EXPECT_THAT(compiles_of_doubled({{at::ones({4})}, {at::ones({4, 8})}, {at::ones({2, 4, 8})}, {at::ones({4})}}),
              ElementsAre(1, 1, 1, 0));
}
TEST(Recompile, RequiresGrad) {
  const auto with = [](bool requires_grad) { return std::tuple(at::ones({4, 8}).requires_grad_(requires_grad)); };
  EXPECT_THAT(compiles_of_doubled({with(false), with(true), with(false), with(true)}), ElementsAre(1, 1, 0, 0));
}
TEST(Recompile, RequiresGradThenBatch) {
  EXPECT_THAT(compiles_of_doubled({{at::ones({4, 8})}, {at::ones({5, 8}).requires_grad_()}, {at::ones({6, 8})}}),
              ElementsAre(1, 1, 1));
}
TEST(Recompile, GradModeRgInput) {
  auto compiled = compile(doubled);
  const std::vector<std::tuple<at::Tensor>> call = {{at::ones({4, 8}).requires_grad_()}};
  EXPECT_THAT(compiles(compiled, doubled, call), ElementsAre(1));
  {
    const at::NoGradGuard no_grad;
    EXPECT_THAT(compiles(compiled, doubled, call), ElementsAre(1));
  }
  EXPECT_THAT(compiles(compiled, doubled, call), ElementsAre(0));
}
TEST(Recompile, DefaultDtype) {
  const auto plus_ones = [](const at::Tensor& x) { return x + at::ones({8}); };
  auto compiled = compile(plus_ones);
  const auto call = batches({4});
  EXPECT_THAT(compiles(compiled, plus_ones, call), ElementsAre(1));
  c10::set_default_dtype(c10::scalarTypeToTypeMeta(at::kDouble));
  EXPECT_THAT(compiles(compiled, plus_ones, call), ElementsAre(1));
  c10::set_default_dtype(c10::scalarTypeToTypeMeta(at::kFloat));
  EXPECT_THAT(compiles(compiled, plus_ones, call), ElementsAre(0));
}

TEST(Recompile, ShapeBranchAuto) {
  const auto branch = [](const at::Tensor& x) { return x.sym_size(0) > 5 ? x * 2 : x + 1; };
  auto compiled = compile(branch);
  EXPECT_THAT(compiles(compiled, branch, batches({4, 5, 8, 9, 3}, 3)), ElementsAre(1, 1, 1, 0, 0));
}
TEST(Recompile, ShapeModBranch) {
  const auto branch = [](const at::Tensor& x) { return x.sym_size(0) % 2 == 0 ? x * 2 : x + 1; };
  auto compiled = compile(branch);
  EXPECT_THAT(compiles(compiled, branch, batches({4, 5, 6, 8, 7}, 3)), ElementsAre(1, 1, 1, 0, 0));
}
TEST(Recompile, ShapeEqConst) {
  const auto branch = [](const at::Tensor& x) { return x.sym_size(0) == 6 ? x * 2 : x + 1; };
  auto compiled = compile(branch);
  EXPECT_THAT(compiles(compiled, branch, batches({4, 5, 6, 7}, 3)), ElementsAre(1, 1, 1, 0));
}
TEST(Recompile, ViewDivisible) {
  const auto view = [](const at::Tensor& x) { return x.view({-1, 2, 3}); };
  auto compiled = compile(view);
  EXPECT_THAT(compiles(compiled, view, batches({4, 6, 8}, 3)), ElementsAre(1, 1, 0));
}
TEST(Recompile, ReshapeSize) {
  const auto reshape = [](const at::Tensor& x) { return x.reshape_symint({x.sym_size(0) * 3}); };
  auto compiled = compile(reshape);
  EXPECT_THAT(compiles(compiled, reshape, batches({4, 5, 6}, 3)), ElementsAre(1, 1, 0));
}

// A size that the code reads as a plain integer is fixed in the graph, so each new size compiles again.
TEST(Recompile, PlainSizesAreFixed) {
  const auto reshape = [](const at::Tensor& x) { return x.reshape({x.size(0) * 3}); };
  auto compiled = compile(reshape);
  EXPECT_THAT(compiles(compiled, reshape, batches({4, 5, 6, 5}, 3)), ElementsAre(1, 1, 1, 0));
}

TEST(Recompile, PairSameBatch) {
  const auto add = [](const at::Tensor& x, const at::Tensor& y) { return x + y; };
  auto compiled = compile(add);
  std::vector<std::tuple<at::Tensor, at::Tensor>> calls;
  for (const std::int64_t n : {4, 5, 6}) calls.emplace_back(at::ones({n, 3}), at::ones({n, 3}));
  EXPECT_THAT(compiles(compiled, add, calls), ElementsAre(1, 1, 0));
}
TEST(Recompile, PairIndependent) {
  const auto sums = [](const at::Tensor& x, const at::Tensor& y) { return x.sum() + y.sum(); };
  auto compiled = compile(sums);
  std::vector<std::tuple<at::Tensor, at::Tensor>> calls;
  for (const auto& [n, m] : {std::pair(4, 4), std::pair(5, 6), std::pair(7, 8), std::pair(9, 9)}) {
    calls.emplace_back(at::ones({n}), at::ones({m}));
  }
  EXPECT_THAT(compiles(compiled, sums, calls), ElementsAre(1, 1, 0, 0));
}
TEST(Recompile, AliasArgs) {
  const auto add = [](const at::Tensor& x, const at::Tensor& y) { return x + y; };
  auto compiled = compile(add);
  const at::Tensor x = at::ones({4}), y = at::ones({4});
  const std::vector<std::tuple<at::Tensor, at::Tensor>> calls = {{x, x}, {x, y}, {x, x}};
  EXPECT_THAT(compiles(compiled, add, calls), ElementsAre(1, 1, 0));
}

}  // namespace
}  // namespace rehearse::compiler
