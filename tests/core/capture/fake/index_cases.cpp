// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/ATen.h>

#include "operator_case.h"

namespace rehearse::capture::test {
namespace {

at::Tensor indexed(const at::Tensor& self, std::vector<std::optional<at::Tensor>> indices) {
  return at::index(self, c10::List<std::optional<at::Tensor>>(indices));
}

}  // namespace

std::vector<OperatorCase> index_cases() {
  return {
      {"index_select", {"f+ n m", "l 5"}, REHEARSE_BODY(x[0].index_select(0, x[1]), x[0].index_select(-1, x[1]))},
      {"index_select_symbolic", {"f+ 4 m", "l n"}, REHEARSE_BODY(x[0].index_select(0, x[1]))},
      {"gather", {"f+ n m", "l n 1"}, REHEARSE_BODY(x[0].gather(1, x[1]))},
      {"scatter",
       {"f+ n m", "l n 1", "f+ n 1"},
       REHEARSE_BODY(x[0].scatter(1, x[1], x[2]), x[0].scatter(1, x[1], 2.0), x[0].scatter_add(1, x[1], x[2]))},
      {"scatter_transposed", {"f+ n m T", "l n 1", "f n 1"}, REHEARSE_BODY(x[0].scatter(1, x[1], x[2]))},
      {"index_add", {"f+ n m", "l 5", "f+ 5 m"}, REHEARSE_BODY(x[0].index_add(0, x[1], x[2]))},
      {"index_one", {"f+ 2 m 3", "l n"}, REHEARSE_BODY(indexed(x[0], {x[1]}))},
      {"index_second", {"f+ n 2 m", "l 4 5"}, REHEARSE_BODY(indexed(x[0], {std::nullopt, x[1]}))},
      {"index_two", {"f+ 3 2 m", "l n", "l n"}, REHEARSE_BODY(indexed(x[0], {x[1], x[2]}))},
      {"index_two_apart", {"f+ 3 n 2 m", "l 4", "l 5 1"}, REHEARSE_BODY(indexed(x[0], {x[1], std::nullopt, x[2]}))},
      {"index_put",
       {"f+ 3 m", "l n", "f+ n m"},
       [](const Tensors& x) {
         const c10::List<std::optional<at::Tensor>> indices(std::vector<std::optional<at::Tensor>>{x[1]});
         at::Tensor y = x[0] * 1;
         y.index_put_(indices, x[2], true);
         return Tensors{at::index_put(x[0], indices, x[2]), y};
       }},
      {"embedding",
       {"f+ 7 m", "l n 5"},
       REHEARSE_BODY(at::embedding(x[0], x[1]), at::embedding(x[0], x[1].select(1, 0)))},
      {"one_row_of_each", {"f+ n m", "l n"}, REHEARSE_BODY(x[0].gather(1, x[1].unsqueeze(-1)).squeeze(-1))},
  };
}

}  // namespace rehearse::capture::test
