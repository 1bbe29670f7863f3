// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/ATen.h>

#include "operator_case.h"

namespace rehearse::capture::test {

std::vector<OperatorCase> view_cases() {
  return {
      {"transposes",
       {"f+ n m 4"},
       REHEARSE_BODY(x[0].transpose(0, 1), x[0].permute({2, 0, 1}), x[0].select(0, 0).t(), x[0].movedim(0, -1),
                     x[0].mT())},
      {"select", {"f+ n m"}, REHEARSE_BODY(x[0].select(0, 0), x[0].select(1, -1), x[0][0])},
      {"slice",
       {"f+ n m"},
       REHEARSE_BODY(x[0].slice(0, 1), x[0].slice(1, 0, 2), x[0].slice(1, -2), x[0].narrow(0, 0, 1))},
      {"slice_to_size",
       {"f+ n m"},
       REHEARSE_BODY(x[0].slice_symint(1, 0, x[0].sym_size(1) - 1), x[0].narrow_symint(0, 1, x[0].sym_size(0) - 1))},
      {"slice_with_step", {"f+ n m"}, REHEARSE_BODY(x[0].slice(1, 0, c10::nullopt, 2))},
      {"unsqueeze",
       {"f+ n m"},
       REHEARSE_BODY(x[0].unsqueeze(0), x[0].unsqueeze(-1), x[0].unsqueeze(1).squeeze(1), x[0].unsqueeze(1).squeeze())},
      {"expand",
       {"f+ 1 m", "f n m"},
       REHEARSE_BODY(x[0].expand_symint({x[1].sym_size(0), x[1].sym_size(1)}), x[0].expand_as(x[1]),
                     x[0].expand({4, -1}), x[0].broadcast_to({2, 3, -1, -1}).select(0, 0))},
      {"view",
       {"f+ n m 4"},
       REHEARSE_BODY(x[0].view({-1}), x[0].view({-1, 4}), x[0].view_symint({x[0].sym_size(0), -1}),
                     x[0].view_symint({x[0].sym_size(0) * x[0].sym_size(1), 2, 2}), x[0].view_as(x[0]))},
      {"reshape",
       {"f+ n m 4"},
       REHEARSE_BODY(x[0].reshape({-1}), x[0].transpose(0, 1).reshape({-1, 4}), x[0].flatten(), x[0].flatten(1),
                     x[0].flatten(0, 1), x[0].unflatten(2, {2, 2}))},
      {"reshape_transposed", {"f+ n m T"}, REHEARSE_BODY(x[0].reshape({-1}), x[0].reshape_symint({x[0].sym_numel()}))},
      {"heads",
       {"f+ n m 12"},
       [](const Tensors& x) {
         const auto batch = x[0].sym_size(0), length = x[0].sym_size(1);
         const at::Tensor heads = x[0].view_symint({batch, length, 3, 4}).transpose(1, 2);
         return Tensors{heads, heads.contiguous(), heads.transpose(1, 2).reshape_symint({batch, length, 12})};
       }},
      {"split",
       {"f+ n 12 m"},
       [](const Tensors& x) {
         Tensors all = x[0].split(5, 1);
         for (const at::Tensor& piece : x[0].chunk(3, 1)) all.push_back(piece);
         for (const at::Tensor& piece : x[0].split_with_sizes({2, 10}, 1)) all.push_back(piece);
         for (const at::Tensor& piece : x[0].unbind(1)) {
           all.push_back(piece);
         }
         return all;
       }},
      {"split_of_transposed",
       {"f+ n m 12"},
       [](const Tensors& x) { return Tensors(x[0].transpose(1, 2).chunk(2, 1)); }},
      {"diagonal", {"f+ n n m"}, REHEARSE_BODY(x[0].diagonal(), x[0].diagonal(1))},
      {"as_strided", {"f+ n m"}, REHEARSE_BODY(x[0].as_strided({1, 2}, {2, 1}, 0))},
      {"detach", {"f+ n m"}, REHEARSE_BODY(x[0].detach(), x[0].alias(), x[0].view_as(x[0]))},
      {"unfold", {"f+ n 12"}, REHEARSE_BODY(x[0].unfold(1, 3, 2))},
      {"complex_views", {"c+ n m"}, REHEARSE_BODY(at::view_as_real(x[0]), at::view_as_complex(at::view_as_real(x[0])))},
      {"cat", {"f+ n m", "f+ n m"}, REHEARSE_BODY(at::cat({x[0], x[1]}, 0), at::cat({x[0], x[1], x[0]}, -1))},
      {"cat_others", {"f+ n m", "f+ n 3"}, REHEARSE_BODY(at::cat({x[0], x[1]}, 1))},
      {"cat_promotes", {"h n m", "f n m"}, REHEARSE_BODY(at::cat({x[0], x[1]}, 0))},
      {"cat_empty", {"f 0", "f+ n m"}, REHEARSE_BODY(at::cat({x[0], x[1]}, 0))},
      {"cat_channels_last", {"f+ n 3 m 5 CL", "f+ n 2 m 5 CL"}, REHEARSE_BODY(at::cat({x[0], x[1]}, 1))},
      {"cat_transposed", {"f+ n m T", "f+ n m T"}, REHEARSE_BODY(at::cat({x[0], x[1]}, 1))},
      {"stack", {"f+ n m", "f+ n m"}, REHEARSE_BODY(at::stack({x[0], x[1]}), at::stack({x[0], x[1]}, -1))},
      {"repeat", {"f+ n m"}, REHEARSE_BODY(x[0].repeat({2, 1, 3}), x[0].tile({2, 2}))},
      {"flip_and_roll", {"f+ n m T"}, REHEARSE_BODY(x[0].flip({0}), x[0].roll(1, 0))},
      {"pad", {"f+ n m"}, REHEARSE_BODY(at::constant_pad_nd(x[0], {1, 2}), at::constant_pad_nd(x[0], {0, 1, 2, 0}, 1))},
      {"triangles", {"f+ n m T"}, REHEARSE_BODY(at::tril(x[0]), at::triu(x[0], 1))},
      {"geometry_in_place",
       {"f n m"},
       [](const Tensors& x) {
         at::Tensor y = x[0].clone();
         y.t_();
         y.unsqueeze_(0);
         y.transpose_(1, 2);
         y.squeeze_(0);
         return Tensors{y};
       }},
      {"zero_dimensions", {"f+"}, REHEARSE_BODY(x[0].unsqueeze(0), x[0].reshape({1, 1}), x[0].expand({3}))},
  };
}

}  // namespace rehearse::capture::test
