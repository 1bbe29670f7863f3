// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/ATen.h>

#include "operator_case.h"

namespace rehearse::capture::test {

std::vector<OperatorCase> factory_cases() {
  return {
      {"of_sizes",
       {"f n m"},
       [](const Tensors& x) {
         const auto n = x[0].sym_size(0), m = x[0].sym_size(1);
         return Tensors{at::zeros_symint({n, m}), at::ones_symint({m}, at::kLong), at::full_symint({n}, 2.5),
                        at::full_symint({n}, 3),  at::empty_symint({n, m}),        at::rand_symint({n, m}),
                        at::randn_symint({n}),    at::full_symint({n}, true),      at::randint_symint(5, {n, m})};
       }},
      {"like",
       {"f n m T"},
       REHEARSE_BODY(at::zeros_like(x[0]), at::ones_like(x[0], at::kLong), at::full_like(x[0], 2),
                     at::empty_like(x[0], at::MemoryFormat::Contiguous), at::randint_like(x[0], 5))},
      {"like_sliced", {"f n m S"}, REHEARSE_BODY(at::zeros_like(x[0]), at::empty_like(x[0], at::kHalf))},
      {"new",
       {"h n m T"},
       [](const Tensors& x) {
         const auto n = x[0].sym_size(0), m = x[0].sym_size(1);
         return Tensors{x[0].new_zeros_symint({n, m}), x[0].new_ones_symint({m}), x[0].new_full_symint({n}, 2),
                        x[0].new_empty_symint({n, 3}, at::kLong), x[0].new_empty_strided_symint({n, m}, {1, n})};
       }},
      {"arange",
       {"f n m"},
       [](const Tensors& x) {
         const auto n = x[0].sym_size(0);
         return Tensors{at::arange(c10::Scalar(n)),
                        at::arange(1, c10::Scalar(n + 3)),
                        at::arange(0, c10::Scalar(n), 2),
                        at::arange(c10::Scalar(n), at::kFloat),
                        at::arange(5),
                        at::arange(0.5, 3.0),
                        at::arange(0.5, at::kLong),
                        at::arange(-0.5, 4.2, at::kLong),
                        at::arange(5, 0, -2)};
       }},
      {"positions",
       {"f n m"},
       [](const Tensors& x) {
         return Tensors{at::arange(c10::Scalar(x[0].sym_size(1))).unsqueeze(0).expand_symint(x[0].sym_sizes())};
       }},
      {"causal_mask",
       {"f n n"},
       [](const Tensors& x) {
         const auto n = x[0].sym_size(0);
         const at::Tensor mask = at::ones_symint({n, n}, at::kBool).tril();
         return Tensors{mask, x[0].masked_fill(mask.logical_not(), -1e9)};
       }},
      {"numbers",
       {"f n m"},
       REHEARSE_BODY(at::scalar_tensor(2.5), at::eye(3), at::linspace(0, 1, 5), at::zeros({0, 3}))},
      {"divided_by_numel", {"f+ n m"}, REHEARSE_BODY(x[0].sum() / c10::Scalar(x[0].sym_numel()))},
  };
}

}  // namespace rehearse::capture::test
