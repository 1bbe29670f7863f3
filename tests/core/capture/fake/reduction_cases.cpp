// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/ATen.h>

#include "operator_case.h"

namespace rehearse::capture::test {

std::vector<OperatorCase> reduction_cases() {
  return {
      {"sum",
       {"f+ n m 4"},
       REHEARSE_BODY(x[0].sum(), x[0].sum(0), x[0].sum(at::IntArrayRef{0, 2}), x[0].sum(-1, true),
                     x[0].sum(at::IntArrayRef{1}, false, at::kDouble))},
      {"sum_of_ints", {"i n m", "B n m"}, REHEARSE_BODY(x[0].sum(), x[0].sum(0), x[1].sum(), x[1].sum(1, true))},
      {"sum_of_number", {"f+"}, REHEARSE_BODY(x[0].sum(), x[0].mean())},
      {"mean", {"f+ n m 4"}, REHEARSE_BODY(x[0].mean(), x[0].mean(1), x[0].mean(at::IntArrayRef{0, 1}, true))},
      {"mean_transposed", {"f+ n m T"}, REHEARSE_BODY(x[0].mean(0), x[0].sum(1))},
      {"extremes", {"f+ n m"}, REHEARSE_BODY(x[0].amax(0), x[0].amin({0, 1}), x[0].amax(1, true))},
      {"max_dim", {"f+ n m"}, REHEARSE_BODY(x[0].max(1))},
      {"min_dim", {"f+ n m"}, REHEARSE_BODY(x[0].min(0, true))},
      {"argmax", {"f n m"}, REHEARSE_BODY(x[0].max(), x[0].min(), x[0].argmax(), x[0].argmax(1), x[0].argmin(0, true))},
      {"any_and_all",
       {"B n m", "u n m"},
       REHEARSE_BODY(x[0].any(), x[0].all(0), x[0].any(1, true), x[1].any(), x[1].all(1))},
      {"var", {"f+ 5 n m 4"}, REHEARSE_BODY(x[0].var(0), x[0].std(at::IntArrayRef{0, 3}), x[0].std(0, false, true))},
      {"var_of_all", {"f 5 n m"}, REHEARSE_BODY(x[0].var(), x[0].std())},
      {"var_mean", {"f 5 n m"}, REHEARSE_BODY(at::var_mean(x[0], at::IntArrayRef{0, 1}))},
      {"norms",
       {"f+ n m"},
       REHEARSE_BODY(x[0].norm(), x[0].norm(2, 1), at::norm(x[0], 1, {0}, true), at::linalg_vector_norm(x[0]),
                     at::linalg_vector_norm(x[0], 2, at::IntArrayRef{1}, true))},
      {"logsumexp", {"f+ n m"}, REHEARSE_BODY(at::logsumexp(x[0], 1), at::logsumexp(x[0], 0, true))},
      {"prod", {"f n m", "i n m"}, REHEARSE_BODY(x[0].prod(), x[0].prod(1), x[1].prod(), x[1].prod(0))},
      {"cumsum", {"f+ n m T", "i n m"}, REHEARSE_BODY(x[0].cumsum(0), x[1].cumprod(1), x[1].cumsum(1))},
      {"softmax",
       {"f+ n m 4"},
       REHEARSE_BODY(at::softmax(x[0], -1), at::log_softmax(x[0], 1), at::softmax(x[0], 0, at::kDouble),
                     at::_safe_softmax(x[0], -1), at::_safe_softmax(x[0], 0, at::kDouble))},
      {"softmax_half", {"h+ n m T"}, REHEARSE_BODY(at::softmax(x[0], -1), at::log_softmax(x[0], 1))},
      {"softmax_to_float", {"h+ n m"}, REHEARSE_BODY(at::softmax(x[0], -1, at::kFloat))},
      {"sort", {"f+ n m"}, REHEARSE_BODY(x[0].sort(1))},
      {"sort_transposed", {"f+ n m T"}, REHEARSE_BODY(x[0].sort(0, true))},
      {"topk", {"f+ n 8 m"}, REHEARSE_BODY(x[0].topk(3, 1))},
      {"median", {"f+ n m"}, REHEARSE_BODY(x[0].median(1))},
      {"aminmax", {"f n m"}, REHEARSE_BODY(at::aminmax(x[0], 1, true))},
      {"empty", {"f 0 n m"}, REHEARSE_BODY(x[0].sum(), x[0].sum(0), x[0].mean(0))},
      {"clip_gradients",
       {"f+ n m", "f+ m"},
       [](const Tensors& x) {
         const at::Tensor total = at::stack({at::linalg_vector_norm(x[0]), at::linalg_vector_norm(x[1])}).norm();
         return Tensors{x[0] * (1.0 / (total + 1e-6)).clamp(c10::nullopt, 1.0)};
       }},
  };
}

}  // namespace rehearse::capture::test
