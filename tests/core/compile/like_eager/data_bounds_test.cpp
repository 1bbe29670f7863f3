// SPDX-License-Identifier: BSD-3-Clause
// Contract: a number that comes from data may have any value, also a negative one. An operator with such an argument
// returns what it returns in eager mode, throws if eager mode throws, and reports the same sizes to later code. There
// is one exception: -1 as a size of a view is an error.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/capture/forward_capture.h>
#include <rehearse/compile/compile.h>
#include <rehearse_internal/libtorch/version.h>

#include "bit_equal.h"
#include "core/compile/like_eager/like_eager.h"

namespace rehearse_test {
namespace {

using c10::SymInt;
using rehearse::test::BitEqual;
namespace libtorch = rehearse::libtorch;

struct BoundCase {
  const char* name;
  at::Tensor (*apply)(const at::Tensor& x, const SymInt& n, const SymInt& m);
  bool is_captured = true;  // false: runs in eager mode
  int sizes = 0;            // number of sizes for which -1 is an error; eager mode infers them
};

constexpr std::int64_t kRows = 4;

const BoundCase kCases[] = {
    {"narrow from the start",
     [](const at::Tensor& x, const SymInt& n, const SymInt&) { return x.narrow_symint(0, 0, n); }},
    {"narrow of one row", [](const at::Tensor& x, const SymInt& n, const SymInt&) { return x.narrow_symint(0, n, 1); }},
    {"narrow of two rows",
     [](const at::Tensor& x, const SymInt& n, const SymInt&) { return x.narrow_symint(0, n, 2); }},
    {"narrow", [](const at::Tensor& x, const SymInt& n, const SymInt& m) { return x.narrow_symint(0, n, m); }},
    {"narrow_copy",
     [](const at::Tensor& x, const SymInt& n, const SymInt&) { return at::narrow_copy_symint(x.detach(), 0, 1, n); },
     false},
    {"slice to n", [](const at::Tensor& x, const SymInt& n, const SymInt&) { return x.slice_symint(0, 0, n); }},
    {"slice from n", [](const at::Tensor& x, const SymInt& n, const SymInt&) { return x.slice_symint(0, n); }},
    {"slice", [](const at::Tensor& x, const SymInt& n, const SymInt& m) { return x.slice_symint(0, n, m); }},
    {"slice by two", [](const at::Tensor& x, const SymInt& n, const SymInt& m) { return x.slice_symint(0, n, m, 2); }},
    {"slice by n", [](const at::Tensor& x, const SymInt& n, const SymInt&) { return x.slice_symint(0, 0, kRows, n); }},
    {"select", [](const at::Tensor& x, const SymInt& n, const SymInt&) { return x.select_symint(0, n); }},
    {"select and narrow", [](const at::Tensor& x, const SymInt& n,
                             const SymInt& m) { return x.select_symint(0, n).narrow_symint(0, 0, m); }},
    {"as_strided", [](const at::Tensor& x, const SymInt& n,
                      const SymInt& m) { return (x * 2).as_strided_symint({n, m}, {x.sym_stride(0), 1}); }},
    {"as_strided by n", [](const at::Tensor& x, const SymInt& n,
                           const SymInt& m) { return (x * 2).as_strided_symint({2, 1}, {n, m}, 1); }},
    {"split", [](const at::Tensor& x, const SymInt& n, const SymInt&) { return x.split_symint(n, 0)[0]; }, false},
    {"split_with_sizes",
     [](const at::Tensor& x, const SymInt& n, const SymInt& m) { return x.split_with_sizes_symint({n, m}, 0)[1]; }},
    {"split_with_sizes that sum up", [](const at::Tensor& x, const SymInt& n,
                                        const SymInt&) { return x.split_with_sizes_symint({n, kRows - n}, 0)[1]; }},
    {"tensor_split", [](const at::Tensor& x, const SymInt& n, const SymInt&) { return x.tensor_split_symint(n, 0)[0]; },
     false},
    {"tensor_split at",
     [](const at::Tensor& x, const SymInt& n, const SymInt& m) { return x.tensor_split_symint({n, m}, 0)[1]; }},
    {"expand of a new dimension",
     [](const at::Tensor& x, const SymInt& n, const SymInt&) { return x.expand_symint({n, kRows, 3}); }},
    {"expand of a row",
     [](const at::Tensor& x, const SymInt& n, const SymInt&) { return x.narrow(0, 0, 1).expand_symint({n, 3}); }},
    {"expand of what is there",
     [](const at::Tensor& x, const SymInt& n, const SymInt&) { return x.expand_symint({n, 3}); }},
    {"view", [](const at::Tensor& x, const SymInt& n, const SymInt&) { return x.view_symint({n, 3}); }, true, 1},
    {"view of two", [](const at::Tensor& x, const SymInt& n, const SymInt& m) { return x.view_symint({n, m, 3}); },
     true, 2},
    {"reshape", [](const at::Tensor& x, const SymInt& n, const SymInt&) { return x.t().reshape_symint({3, n}); }, true,
     1},
    {"unflatten", [](const at::Tensor& x, const SymInt& n, const SymInt& m) { return x.unflatten_symint(0, {n, m}); },
     true, 2},
    {"repeat", [](const at::Tensor& x, const SymInt& n, const SymInt& m) { return x.repeat_symint({n, m}); }},
    {"as_strided",
     [](const at::Tensor& x, const SymInt& n, const SymInt& m) { return x.as_strided_symint({n, 3}, {3, 1}, m); }},
    {"ones", [](const at::Tensor& x, const SymInt& n, const SymInt&) { return x * at::ones_symint({n, 3}).sum(); }},
    {"new_zeros",
     [](const at::Tensor& x, const SymInt& n, const SymInt& m) { return x + x.new_zeros_symint({n, m}).sum(); }},
    {"arange", [](const at::Tensor& x, const SymInt& n, const SymInt&) { return x * at::arange(at::Scalar(n)).sum(); }},
    {"arange from n to m", [](const at::Tensor& x, const SymInt& n,
                              const SymInt& m) { return x * at::arange(at::Scalar(n), at::Scalar(m)).sum(); }},
    {"eye", [](const at::Tensor& x, const SymInt& n, const SymInt&) { return x * at::eye_symint(n).sum(); }},
    {"topk", [](const at::Tensor& x, const SymInt& n, const SymInt&) { return std::get<0>(x.topk_symint(n, 0)); }},
    {"pad", [](const at::Tensor& x, const SymInt& n,
               const SymInt& m) { return at::constant_pad_nd_symint(x, {0, 0, n, m}, 7); }},
    {"roll", [](const at::Tensor& x, const SymInt& n, const SymInt&) { return at::roll_symint(x, n, 0); }},
    {"repeat_interleave",
     [](const at::Tensor& x, const SymInt& n, const SymInt&) { return x.repeat_interleave_symint(n, 0); },
     libtorch::Minors{.since = 12}.contain(libtorch::kMinor)},
    {"a factor", [](const at::Tensor& x, const SymInt& n, const SymInt& m) { return x * at::Scalar(n * 3 - m); }},
    {"a size below it",
     [](const at::Tensor& x, const SymInt& n, const SymInt&) { return x.expand_symint({n - 1, kRows, 3}); }},
};

// The result, and the sizes that code after the operator sees.
std::vector<at::Tensor> results_of(const BoundCase& of, const at::Tensor& x, const at::Tensor& y) {
  const std::vector<SymInt> numbers = rehearse::sym_tolist(y);
  const at::Tensor made = of.apply(x * 2, numbers[0], numbers[1]);
  SymInt weighed = 1;
  for (std::int64_t d = 0; d < made.dim(); ++d) weighed = weighed * 100 + made.sym_size(d);
  return {made * 3, x.sum() * at::Scalar(weighed)};
}

struct Outcome {
  std::optional<Observed> seen;
  std::string error;
};

template <class Function>
Outcome outcome_of(Function&& function, const at::Tensor& x, const at::Tensor& y) {
  Outcome outcome;
  try {
    outcome.seen = observe([&](const std::vector<at::Tensor>& t) { return function(t[0], t[1]); }, {x, y});
  } catch (const std::exception& error) {
    outcome.error = error.what();
  }
  return outcome;
}

// An ordinary pair comes first.
std::vector<at::Tensor> all_numbers() {
  std::vector<at::Tensor> all{at::tensor(std::vector<std::int64_t>{1, 2}, at::kLong)};
  for (std::int64_t n = -3; n <= kRows + 3; ++n) {
    for (const std::int64_t m : {-3, -1, 0, 1, 2, 4, 7})
      all.push_back(at::tensor(std::vector<std::int64_t>{n, m}, at::kLong));
  }
  return all;
}

class DataBounds : public testing::TestWithParam<BoundCase> {};
INSTANTIATE_TEST_SUITE_P(Operators, DataBounds, testing::ValuesIn(kCases),
                         [](const auto& info) { return "Case" + std::to_string(info.index); });

TEST_P(DataBounds, AreThoseOfEagerMode) {
  const BoundCase& tested = GetParam();
  const auto function = [&](const at::Tensor& x, const at::Tensor& y) { return results_of(tested, x, y); };
  for (const char* backend : {"eager", "aot_eager"}) {
    auto compiled = rehearse::compile(function, {.backend = backend});
    const at::Tensor x = (at::arange(kRows * 3, at::kFloat).view({kRows, 3}) / 8).requires_grad_();
    int threw = 0;
    for (const at::Tensor& y : all_numbers()) {
      const std::int64_t n = y[0].item<std::int64_t>(), m = y[1].item<std::int64_t>();
      const std::string what =
          std::string(tested.name) + " with " + backend + " of " + std::to_string(n) + ", " + std::to_string(m);
      const Outcome expected = outcome_of(function, x, y), found = outcome_of(compiled, x, y);
      threw += expected.error.empty() ? 0 : 1;
      if ((tested.sizes > 0 && n == -1) || (tested.sizes > 1 && m == -1)) {
        EXPECT_FALSE(found.seen) << what;
        continue;
      }
      EXPECT_EQ(found.seen.has_value(), expected.seen.has_value()) << what << ": " << found.error << expected.error;
      if (found.seen && expected.seen) expect_same(*found.seen, *expected.seen, what);
    }
    EXPECT_EQ(compiled.explain().refusal.empty(), tested.is_captured) << compiled.explain().refusal;
  }
}

// When a back end compiles the graph before a read, it may state facts about a number from data. These facts must not
// become nodes of the next segment. Verification compiles nothing, so it would not see such nodes, and would consider
// the code changed.
TEST(DataBounds, InFrontOfAReadGiveTheSameCodeInEachCall) {
  const auto function = [](const at::Tensor& x, at::Tensor& y) {
    const at::Tensor row = x.narrow_symint(0, rehearse::sym_item(x.sum().sign().to(at::kLong)), 1);
    y.copy_(x[0].expand_as(y));
    return (x.abs().sum() >= 0).item<bool>() ? row * 2 : row * 3;
  };
  for (const char* const backend : {"eager", "aot_eager"}) {
    auto compiled = rehearse::compile(function, {.backend = backend});
    for (const double sign : {1.0, 1.0, -1.0, 1.0}) {
      const at::Tensor x = at::arange(1, 13, at::kDouble).view({4, 3}) * sign;
      at::Tensor mine = at::zeros({2, 3}, at::kDouble), eagers = mine.clone();
      EXPECT_THAT(compiled(x, mine), BitEqual(function(x, eagers)));
      EXPECT_THAT(mine, BitEqual(eagers));
    }
    EXPECT_EQ(compiled.stats().eager_calls, 0);
  }
}

}  // namespace
}  // namespace rehearse_test
