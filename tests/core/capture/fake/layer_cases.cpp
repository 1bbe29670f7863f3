// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/ATen.h>

#include "operator_case.h"

namespace rehearse::capture::test {
namespace {

constexpr auto kNone = at::Reduction::None;
constexpr auto kSum = at::Reduction::Sum;

}  // namespace

std::vector<OperatorCase> layer_cases() {
  return {
      {"layer_norm", {"f+ n m 8", "f+ 8", "f+ 8"}, REHEARSE_BODY(at::layer_norm(x[0], {8}, x[1], x[2]))},
      {"layer_norm_plain", {"f+ n m 8"}, REHEARSE_BODY(at::layer_norm(x[0], {8}))},
      {"layer_norm_transposed", {"f+ n m 8 T", "f+ 8", "f+ 8"}, REHEARSE_BODY(at::layer_norm(x[0], {8}, x[1], x[2]))},
      {"layer_norm_mixed", {"b+ n 8", "f+ 8", "f+ 8"}, REHEARSE_BODY(at::layer_norm(x[0], {8}, x[1], x[2]))},
      {"layer_norm_two", {"f+ n 4 8", "f+ 4 8", "f+ 4 8"}, REHEARSE_BODY(at::layer_norm(x[0], {4, 8}, x[1], x[2]))},
      {"batch_norm",
       {"f+ n 3 m 5", "f+ 3", "f+ 3", "f 3", "f 3"},
       REHEARSE_BODY(at::batch_norm(x[0], x[1], x[2], x[3], x[4], true, 0.1, 1e-5, false))},
      {"batch_norm_eval",
       {"f+ n 3 m 5", "f+ 3", "f+ 3", "f 3", "f 3"},
       REHEARSE_BODY(at::batch_norm(x[0], x[1], x[2], x[3], x[4], false, 0.1, 1e-5, false))},
      {"batch_norm_channels_last",
       {"f+ n 3 m 5 CL", "f+ 3", "f+ 3", "f 3", "f 3"},
       REHEARSE_BODY(at::batch_norm(x[0], x[1], x[2], x[3], x[4], true, 0.1, 1e-5, false))},
      {"batch_norm_without_statistics",
       {"f+ n 3 5 5"},
       REHEARSE_BODY(at::batch_norm(x[0], {}, {}, {}, {}, true, 0.1, 1e-5, false))},
      {"group_norm", {"f+ n 6 m 5", "f+ 6", "f+ 6"}, REHEARSE_BODY(at::group_norm(x[0], 3, x[1], x[2]))},
      {"conv1d", {"f+ n 3 12", "f+ 4 3 3", "f+ 4"}, REHEARSE_BODY(at::conv1d(x[0], x[1], x[2]))},
      {"conv2d",
       {"f+ n 3 m 9", "f+ 4 3 3 3", "f+ 4"},
       REHEARSE_BODY(at::conv2d(x[0], x[1], x[2], 1, 1), at::conv2d(x[0], x[1], {}, 2, {2, 1}))},
      {"conv2d_channels_last",
       {"f+ n 3 8 9 CL", "f+ 4 3 3 3 CL", "f+ 4"},
       REHEARSE_BODY(at::conv2d(x[0], x[1], x[2], 1, 1))},
      {"conv2d_double", {"d+ n 3 m 9", "d+ 4 3 3 3", "d+ 4"}, REHEARSE_BODY(at::conv2d(x[0], x[1], x[2], 1, 1))},
      {"conv2d_groups", {"f+ n 4 8 9", "f+ 4 2 3 3"}, REHEARSE_BODY(at::conv2d(x[0], x[1], {}, 1, 1, 1, 2))},
      {"conv2d_dilated", {"f+ n 3 m 9", "f+ 4 3 3 3"}, REHEARSE_BODY(at::conv2d(x[0], x[1], {}, 1, 3, 2))},
      {"conv_transpose",
       {"f+ n 4 m 9", "f+ 4 3 3 3", "f+ 3"},
       REHEARSE_BODY(at::conv_transpose2d(x[0], x[1], x[2], 2, 1, 1))},
      {"pooling",
       {"f+ n 3 8 12"},
       REHEARSE_BODY(at::max_pool2d(x[0], 2), at::avg_pool2d(x[0], 2), at::adaptive_avg_pool2d(x[0], {1, 1}),
                     at::adaptive_avg_pool2d(x[0], {2, 3}))},
      {"attention",
       {"f+ n 2 m 8", "f+ n 2 m 8", "f+ n 2 m 8"},
       REHEARSE_BODY(at::scaled_dot_product_attention(x[0], x[1], x[2]),
                     at::scaled_dot_product_attention(x[0], x[1], x[2], {}, 0.0, true))},
      {"attention_of_heads",
       {"f+ n m 16"},
       [](const Tensors& x) {
         const auto heads = x[0].view_symint({x[0].sym_size(0), x[0].sym_size(1), 2, 8}).transpose(1, 2);
         const at::Tensor y = at::scaled_dot_product_attention(heads, heads, heads);
         return Tensors{y.transpose(1, 2).reshape_symint(x[0].sym_sizes())};
       }},
      {"mse",
       {"f+ n m", "f n m"},
       REHEARSE_BODY(at::mse_loss(x[0], x[1]), at::mse_loss(x[0], x[1], kNone), at::mse_loss(x[0], x[1], kSum))},
      {"losses",
       {"f+ n m", "f n m"},
       REHEARSE_BODY(at::smooth_l1_loss(x[0], x[1]), at::huber_loss(x[0], x[1]), at::l1_loss(x[0], x[1]),
                     at::smooth_l1_loss(x[0], x[1], kNone), at::huber_loss(x[0], x[1], kNone), at::kl_div(x[0], x[1]))},
      {"bits",
       {"f+ n m", "f n m"},
       REHEARSE_BODY(at::binary_cross_entropy(x[0], x[1]), at::binary_cross_entropy(x[0], x[1], {}, kNone),
                     at::binary_cross_entropy_with_logits(x[0], x[1]),
                     at::binary_cross_entropy_with_logits(x[0], x[1], {}, {}, kNone))},
      {"cross_entropy",
       {"f+ n m", "l n"},
       REHEARSE_BODY(at::cross_entropy_loss(x[0], x[1]), at::cross_entropy_loss(x[0], x[1], {}, kNone),
                     at::nll_loss(x[0], x[1], {}, kSum))},
      {"cross_entropy_2d", {"f+ n 4 m 5", "l n m 5"}, REHEARSE_BODY(at::cross_entropy_loss(x[0], x[1]))},
      {"label_smoothing",
       {"f+ n m", "l n"},
       REHEARSE_BODY(at::cross_entropy_loss_symint(x[0], x[1], {}, at::Reduction::Mean, -100, 0.1))},
      {"mlp",
       {"f+ n m", "f+ 8 m", "f+ 8", "f+ 4 8", "f+ 4", "l n"},
       [](const Tensors& x) {
         const at::Tensor hidden = at::linear(x[0], x[1], x[2]).relu();
         return Tensors{at::cross_entropy_loss(at::linear(hidden, x[3], x[4]), x[5])};
       }},
  };
}

}  // namespace rehearse::capture::test
