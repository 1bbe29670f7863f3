// SPDX-License-Identifier: BSD-3-Clause
// Divisions of sizes, and of integers from data, round to zero in captured code, too, whatever the signs.
#include <cstdint>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/capture/forward_capture.h>
#include <rehearse/compile/compile.h>

#include "bit_equal.h"

namespace rehearse::compiler {
namespace {

using at::Tensor;
using rehearse::test::BitEqual;

std::vector<Tensor> parts_of(const Tensor& x, const c10::SymInt& dividend, const c10::SymInt& divisor) {
  return {x * at::Scalar(dividend / divisor), x * at::Scalar(dividend % divisor)};
}

// n - 9 and 9 - n change their signs between the calls.
TEST(SizeArithmetic, DivisionsOfSizesRoundToZero) {
  for (const std::int64_t divisor : {-4, -1, 1, 2, 4}) {
    const auto function = [divisor](const Tensor& x) {
      const c10::SymInt n = x.sym_size(0);
      std::vector<Tensor> all = parts_of(x, n - 9, divisor);
      for (Tensor& part : parts_of(x, 9 - n, divisor)) all.push_back(std::move(part));
      for (Tensor& part : parts_of(x, 2 * n + 1, n - 20)) all.push_back(std::move(part));
      return all;
    };
    for (const bool dynamic : {false, true}) {
      auto compiled = compile(function, {.dynamic = dynamic ? std::optional(true) : std::nullopt, .fullgraph = true});
      for (const std::int64_t size : {4, 6, 5, 9, 12, 13, 7, 30}) {
        const Tensor x = at::ones({size});
        EXPECT_THAT(compiled(x), BitEqual(function(x))) << size;
      }
    }
  }
}

TEST(SizeArithmetic, DivisionsOfIntegersFromDataRoundToZero) {
  const auto function = [](const Tensor& x) {
    const c10::SymInt number = sym_item(x.sum());
    return std::vector<Tensor>{at::full_symint({number / 2 + 10}, 1), at::full_symint({number % 3 + 10}, 1),
                               at::full_symint({number / -3 + 10}, 1)};
  };
  for (const char* const backend : {"eager", "aot_eager"}) {
    auto compiled = compile(function, {.backend = backend, .fullgraph = true});
    for (const std::int64_t number : {-5, 5, -4, 7, 0, -1}) {
      const Tensor x = at::full({1}, number, at::kLong);
      EXPECT_THAT(compiled(x), BitEqual(function(x))) << number;
    }
  }
}

// 64 bits do not hold the distance between such a position and the largest one, which slice() takes for the end.
TEST(SizeArithmetic, PositionsBelowASize) {
  const auto function = [](const Tensor& x) {
    const c10::SymInt position = x.sym_size(1) - 2;
    return std::vector<Tensor>{x.narrow_symint(0, position, 0), x.slice_symint(0, 0, position),
                               x.slice_symint(0, position)};
  };
  auto compiled = compile(function, {.dynamic = true, .fullgraph = true});
  for (const std::int64_t size : {4, 5, 7}) {
    const Tensor x = at::arange(size * 3).view({3, size}).t();
    EXPECT_THAT(compiled(x), BitEqual(function(x))) << size;
  }
  EXPECT_EQ(compiled.stats().compiles, 1);
}

// The second pool gets a quotient as its size. A guard fixes the quotient, but not the size of x.
TEST(SizeArithmetic, APoolOfAPool) {
  const auto function = [](const Tensor& x) {
    const Tensor columns = at::stack(x.unbind(0), -1);
    return std::vector<Tensor>{at::max_pool1d(at::max_pool1d(x, 2), 2), columns};
  };
  auto compiled = compile(function, {.dynamic = true, .fullgraph = true});
  for (const std::int64_t size : {5, 4, 9, 5}) {
    const Tensor x = at::arange(3.0 * static_cast<double>(size)).view({3, size});
    EXPECT_THAT(compiled(x), BitEqual(function(x))) << size;
  }
}

}  // namespace
}  // namespace rehearse::compiler
