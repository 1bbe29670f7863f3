// SPDX-License-Identifier: BSD-3-Clause
// Contract: the recorded backward of some operators is right for one size only. Its conditions on sizes become guards,
// so code with such operators trains at every size as in eager mode.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/compile/compile.h>
#include <rehearse/compile/errors.h>
#include <rehearse/compile/mark_dynamic.h>

#include "bit_equal.h"
#include "core/compile/like_eager/like_eager.h"

namespace rehearse_test::sizes_vary {
namespace {

using rehearse::test::BitEqual;

using Results = std::vector<at::Tensor>;

struct VaryingCase {
  const char* name;
  Results (*apply)(const at::Tensor& x);
};

// Cases on square matrices, with and without a batch dimension, whose backward needs guards. Rows of
// tests/data/compile/operators.tsv try the other operators at several sizes.
const VaryingCase kCases[] = {
    {"masked_select", [](const at::Tensor& x) { return Results{x.masked_select(x > 0.5)}; }},
    {"trace", [](const at::Tensor& x) { return Results{x.dim() == 2 ? x.trace() : x[0].trace()}; }},
    {"block_diag", [](const at::Tensor& x) { return Results{x.dim() == 2 ? at::block_diag({x, x * 2}) : x * 1}; }},
    {"inv", [](const at::Tensor& x) { return Results{at::linalg_inv(x)}; }},
};

at::Tensor matrix(std::int64_t size, bool is_batch) {
  at::manual_seed(size);
  const at::Tensor x = at::rand({size, size}, at::kDouble) + at::eye(size, at::kDouble) * 2;
  return is_batch ? at::stack({x, x.t() + 0.25}) : x;
}

class SizesVary : public testing::TestWithParam<VaryingCase> {};
INSTANTIATE_TEST_SUITE_P(Operators, SizesVary, testing::ValuesIn(kCases),
                         [](const auto& info) { return "Case" + std::to_string(info.index); });

TEST_P(SizesVary, TrainsAsInEagerMode) {
  const VaryingCase& tested = GetParam();
  for (const bool is_batch : {false, true}) {
    for (const std::optional<bool> dynamic : {std::optional<bool>(), std::optional<bool>(true)}) {
      auto compiled = rehearse::compile(tested.apply, {.dynamic = dynamic});
      for (const std::int64_t size : {3, 4, 5, 6, 5, 3}) {
        const at::Tensor x = matrix(size, is_batch).requires_grad_();
        const std::string what =
            std::string(tested.name) + " of size " + std::to_string(size) + (is_batch ? ", in a batch" : "");
        const auto eagerly = [&](const std::vector<at::Tensor>& t) { return tested.apply(t[0]); };
        const auto as_compiled = [&](const std::vector<at::Tensor>& t) { return compiled(t[0]); };
        const Observed expected = observe(eagerly, {x});
        try {
          expect_same(observe(as_compiled, {x}), expected, what);
        } catch (const std::exception& error) {
          ADD_FAILURE() << what << ": " << std::string(error.what()).substr(0, 300);
        }
      }
    }
  }
}

TEST(SizesVary, AMarkThatABackwardBreaks_IsAnError) {
  int errors = 0;
  for (const VaryingCase& tested : kCases) {
    auto compiled = rehearse::compile(tested.apply);
    for (const std::int64_t size : {3, 4, 5}) {
      const at::Tensor x = matrix(size, false).requires_grad_();
      rehearse::mark_dynamic(x, 0);
      rehearse::mark_dynamic(x, 1);
      try {
        for (const at::Tensor& result : compiled(x)) {
          if (result.requires_grad()) result.sum().backward({}, /*retain_graph=*/true);
        }
      } catch (const rehearse::compiler::CompileError& error) {
        EXPECT_THAT(error.what(), testing::HasSubstr("was marked dynamic, but the code fixes it")) << tested.name;
        ++errors;
      }
    }
  }
  EXPECT_GT(errors, 0);
}

// If the code never uses an argument, no guard compares the argument's sizes. In a later call, they may differ from the
// sizes of another argument, even if both were equal at capture. A size may also be 0 or 1, for which there are no
// symbols.
TEST(SizesVary, ALeafThatIsNotUsed_MayHaveAnySize) {
  const auto forward = [](const at::Tensor& /*unused*/, const at::Tensor& x) {
    if ((x.sum() > 0).item<bool>()) return x + 1;
    return x.sym_size(0) > 6 ? x * 2 : x * 3;
  };
  for (const std::int64_t unused : {5, 4, 9, 1, 0}) {
    for (const std::int64_t size : {5, 8, 3}) {
      auto compiled = rehearse::compile(forward, {.dynamic = true});
      const auto expect_same = [&](const at::Tensor& other, const at::Tensor& x) {
        EXPECT_THAT(compiled(other, x), BitEqual(forward(other, x))) << unused << " and " << size;
      };
      expect_same(at::ones({5, 1}), at::ones({5}));
      expect_same(at::ones({unused, 1}), at::ones({size}));
      expect_same(at::ones({unused, 1}), -at::ones({size}));
      expect_same(at::ones({unused, unused}), -at::ones({size}));
    }
  }
}

}  // namespace
}  // namespace rehearse_test::sizes_vary
