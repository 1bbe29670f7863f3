// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/ATen.h>

#include "operator_case.h"

namespace rehearse::capture::test {

std::vector<OperatorCase> matrix_cases() {
  return {
      {"mm", {"f+ n m", "f+ m 4"}, REHEARSE_BODY(x[0].mm(x[1]))},
      {"mm_transposed", {"f+ n m", "f+ 4 m"}, REHEARSE_BODY(x[0].mm(x[1].t()), at::matmul(x[0], x[1].t()))},
      {"mm_of_transposed", {"f+ n m T", "f+ m 4 T"}, REHEARSE_BODY(x[0].mm(x[1]))},
      {"addmm", {"f+ 4", "f+ n m", "f+ m 4"}, REHEARSE_BODY(at::addmm(x[0], x[1], x[2]))},
      {"linear", {"f+ n m", "f+ 4 m", "f+ 4"}, REHEARSE_BODY(at::linear(x[0], x[1], x[2]), at::linear(x[0], x[1]))},
      {"linear_bfloat16", {"b+ n m", "b+ 4 m", "b+ 4"}, REHEARSE_BODY(at::linear(x[0], x[1], x[2]))},
      {"bmm", {"f+ n 3 m", "f+ n m 4"}, REHEARSE_BODY(x[0].bmm(x[1]))},
      {"bmm_of_transposed", {"f+ n 3 m", "f+ n 4 m"}, REHEARSE_BODY(x[0].bmm(x[1].transpose(1, 2)))},
      {"baddbmm", {"f+ n 3 4", "f+ n 3 m", "f+ n m 4"}, REHEARSE_BODY(at::baddbmm(x[0], x[1], x[2], 1, 0.5))},
      {"mv", {"f+ n m", "f+ m"}, REHEARSE_BODY(x[0].mv(x[1]))},
      {"addmv", {"f+ n", "f+ n m", "f+ m"}, REHEARSE_BODY(at::addmv(x[0], x[1], x[2]))},
      {"dot", {"f+ n", "f+ n"}, REHEARSE_BODY(x[0].dot(x[1]))},
      {"outer", {"f+ n", "f+ m"}, REHEARSE_BODY(at::outer(x[0], x[1]))},
      {"matmul_square", {"f+ n m"}, REHEARSE_BODY(at::mm(x[0], x[0].t()))},
      {"addbmm", {"f+ 3 4", "f+ n 3 m", "f+ n m 4"}, REHEARSE_BODY(at::addbmm(x[0], x[1], x[2]))},
  };
}

}  // namespace rehearse::capture::test
