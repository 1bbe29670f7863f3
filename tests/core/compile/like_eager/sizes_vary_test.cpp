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

// Cases on square matrices, with and without a batch dimension.
const VaryingCase kCases[] = {
    {"masked_select", [](const at::Tensor& x) { return Results{x.masked_select(x > 0.5)}; }},
    {"trace", [](const at::Tensor& x) { return Results{x.dim() == 2 ? x.trace() : x[0].trace()}; }},
    {"block_diag", [](const at::Tensor& x) { return Results{x.dim() == 2 ? at::block_diag({x, x * 2}) : x * 1}; }},
    {"inv", [](const at::Tensor& x) { return Results{at::linalg_inv(x)}; }},
    {"pinverse", [](const at::Tensor& x) { return Results{x.dim() == 2 ? at::pinverse(x) : x * 1}; }},
    {"det", [](const at::Tensor& x) { return Results{at::linalg_det(x)}; }},
    {"slogdet", [](const at::Tensor& x) { return Results{std::get<1>(at::linalg_slogdet(x))}; }},
    {"svdvals", [](const at::Tensor& x) { return Results{at::linalg_svdvals(x)}; }},
    {"qr", [](const at::Tensor& x) { return Results{std::get<0>(at::linalg_qr(x)), std::get<1>(at::linalg_qr(x))}; }},
    {"cholesky", [](const at::Tensor& x) { return Results{at::linalg_cholesky(x.matmul(x.mT()))}; }},
    {"solve", [](const at::Tensor& x) { return Results{at::linalg_solve(x, x + 1)}; }},
    {"solve_triangular",
     [](const at::Tensor& x) { return Results{at::linalg_solve_triangular(x.triu(), x + 1, true)}; }},
    {"eigvalsh", [](const at::Tensor& x) { return Results{at::linalg_eigvalsh(x + x.mT())}; }},
    {"lu_factor", [](const at::Tensor& x) { return Results{std::get<0>(at::linalg_lu_factor(x))}; }},
    {"matrix_power", [](const at::Tensor& x) { return Results{at::linalg_matrix_power(x, 3)}; }},
    {"matrix_exp", [](const at::Tensor& x) { return Results{at::linalg_matrix_exp(x / 8)}; }},
    {"diag", [](const at::Tensor& x) { return Results{x.dim() == 2 ? x.diag() : x.diagonal(0, -2, -1)}; }},
    {"diag_embed", [](const at::Tensor& x) { return Results{x.diag_embed()}; }},
    {"tril", [](const at::Tensor& x) { return Results{x.tril() + x.triu(1) * 2}; }},
    {"cumprod", [](const at::Tensor& x) { return Results{x.cumprod(-1)}; }},
    {"prod", [](const at::Tensor& x) { return Results{x.prod(-1)}; }},
    {"prod of all", [](const at::Tensor& x) { return Results{x.prod()}; }},
    {"cummax", [](const at::Tensor& x) { return Results{std::get<0>(x.cummax(-1))}; }},
    {"sort", [](const at::Tensor& x) { return Results{std::get<0>(x.sort(-1))}; }},
    {"median", [](const at::Tensor& x) { return Results{std::get<0>(x.median(-1))}; }},
    {"mode", [](const at::Tensor& x) { return Results{std::get<0>(x.mode(-1))}; }},
    {"kthvalue", [](const at::Tensor& x) { return Results{std::get<0>(x.kthvalue(2, -1))}; }},
    {"max of all", [](const at::Tensor& x) { return Results{x.max()}; }},
    {"amax", [](const at::Tensor& x) { return Results{x.amax(-1)}; }},
    {"logcumsumexp", [](const at::Tensor& x) { return Results{x.logcumsumexp(-1)}; }},
    {"renorm", [](const at::Tensor& x) { return Results{x.renorm(2, 0, 1)}; }},
    {"cdist", [](const at::Tensor& x) { return Results{at::cdist(x, x * 2)}; }},
    {"pdist", [](const at::Tensor& x) { return Results{x.dim() == 2 ? at::pdist(x) : x * 1}; }},
    {"kron", [](const at::Tensor& x) { return Results{at::kron(x, x)}; }},
    {"roll", [](const at::Tensor& x) { return Results{x.roll(1, -1)}; }},
    {"flip", [](const at::Tensor& x) { return Results{x.flip({-1})}; }},
    {"unfold", [](const at::Tensor& x) { return Results{x.unfold(-1, 2, 1)}; }},
    {"take", [](const at::Tensor& x) { return Results{x.take(at::tensor({0, 1, 3}, at::kLong))}; }},
    {"put",
     [](const at::Tensor& x) { return Results{x.put(at::tensor({0, 1}, at::kLong), x.flatten().slice(0, 0, 2))}; }},
    {"index_put", [](const at::Tensor& x) { return Results{x.index_fill(-1, at::tensor({0}, at::kLong), 2)}; }},
    {"masked_scatter", [](const at::Tensor& x) { return Results{x.masked_scatter(x > 0.5, x * 2)}; }},
    {"repeat_interleave", [](const at::Tensor& x) { return Results{x.repeat_interleave(2, -1)}; }},
    {"norm", [](const at::Tensor& x) { return Results{x.norm(3, -1)}; }},
    {"std", [](const at::Tensor& x) { return Results{x.std(-1), x.var()}; }},
    {"diff", [](const at::Tensor& x) { return Results{at::diff(x)}; }},
    {"cov", [](const at::Tensor& x) { return Results{x.dim() == 2 ? x.cov() : x * 1}; }},
    {"nonzero", [](const at::Tensor& x) { return Results{x.index({(x > 0.5)})}; }},
    {"trapezoid", [](const at::Tensor& x) { return Results{at::trapezoid(x, -1)}; }},
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
