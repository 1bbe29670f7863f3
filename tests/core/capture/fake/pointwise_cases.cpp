// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/ATen.h>

#include "operator_case.h"

namespace rehearse::capture::test {

std::vector<OperatorCase> pointwise_cases() {
  return {
      {"add", {"f+ n m", "f+ n m"}, REHEARSE_BODY(x[0] + x[1])},
      {"add_broadcast", {"f+ n 1 m", "f+ 3 1"}, REHEARSE_BODY(x[0] + x[1])},
      {"add_row", {"f+ n m", "f+ m"}, REHEARSE_BODY(x[0] + x[1])},
      {"add_transposed", {"f+ n m T", "f+ n m T"}, REHEARSE_BODY(x[0] + x[1])},
      {"add_mixed_layouts", {"f+ n m T", "f+ n m"}, REHEARSE_BODY(x[0] + x[1], x[1] + x[0])},
      {"add_channels_last", {"f+ n 3 m 5 CL", "f+ n 3 m 5 CL"}, REHEARSE_BODY(x[0] + x[1])},
      {"add_channels_last_and_not", {"f+ n 3 m 5 CL", "f+ n 3 m 5"}, REHEARSE_BODY(x[0] + x[1], x[1] + x[0])},
      {"add_sliced", {"f+ n m S", "f+ n m S"}, REHEARSE_BODY(x[0] + x[1])},
      {"add_expanded", {"f n m E", "f+ n m E"}, REHEARSE_BODY(x[0] + x[1])},
      {"add_promotes", {"f n m", "d n m"}, REHEARSE_BODY(x[0] + x[1])},
      {"add_int_and_float", {"l n m", "h n m"}, REHEARSE_BODY(x[0] + x[1])},
      {"add_zero_dimensions", {"h n m", "f"}, REHEARSE_BODY(x[0] + x[1])},
      {"add_all_zero_dimensions", {"h", "f"}, REHEARSE_BODY(x[0] + x[1])},
      {"add_number", {"h+ n m"}, REHEARSE_BODY(x[0] + 2.5, x[0] * 3, 1 - x[0], 1 / x[0])},
      {"int_and_float_number", {"i n m"}, REHEARSE_BODY(x[0] + 2.5, x[0] * 3, x[0] / 2)},
      {"bool_and_number", {"B n m"}, REHEARSE_BODY(x[0] + 1, x[0] * 0.5)},
      {"complex", {"c+ n m", "f n m"}, REHEARSE_BODY(x[0] * x[1], at::abs(x[0]))},
      {"empty_dimension", {"f n 0 m", "f 1 0 m"}, REHEARSE_BODY(x[0] + x[1])},
      {"mul", {"f+ n m", "f+ n m"}, REHEARSE_BODY(x[0] * x[1])},
      {"div_modes",
       {"i n m", "f n m"},
       REHEARSE_BODY(at::div(x[1], x[0] + 1, "floor"), at::div(x[0], x[0] + 1, "trunc"))},
      {"relu", {"f+ n m"}, REHEARSE_BODY(at::relu(x[0]))},
      {"relu_transposed", {"f+ n m T"}, REHEARSE_BODY(at::relu(x[0]))},
      {"gelu", {"f+ n m"}, REHEARSE_BODY(at::gelu(x[0]))},
      {"gelu_tanh", {"b+ n m"}, REHEARSE_BODY(at::gelu(x[0], "tanh"))},
      {"activations",
       {"f+ n m"},
       REHEARSE_BODY(at::sigmoid(x[0]), at::tanh(x[0]), at::silu(x[0]), at::elu(x[0]), at::leaky_relu(x[0]),
                     at::softplus(x[0]), at::hardtanh(x[0]), at::hardswish(x[0]), at::mish(x[0]),
                     at::log_sigmoid(x[0]))},
      {"functions",
       {"f+ n m"},
       REHEARSE_BODY(at::exp(x[0]), at::log(x[0]), at::sqrt(x[0]), at::rsqrt(x[0]), at::sin(x[0]), at::erf(x[0]),
                     at::neg(x[0]), at::reciprocal(x[0]), at::log1p(x[0]), at::square(x[0]), at::floor(x[0]))},
      {"functions_of_ints", {"l n m"}, REHEARSE_BODY(at::exp(x[0]), at::sqrt(x[0]), at::neg(x[0]), at::abs(x[0]))},
      {"pow",
       {"f+ n m", "f+ m"},
       REHEARSE_BODY(at::pow(x[0], 2), at::pow(x[0], 0.5), at::pow(x[0], x[1]), at::pow(2, x[0]))},
      {"compare", {"f n m", "f m"}, REHEARSE_BODY(x[0] < x[1], x[0] >= 0.5, at::eq(x[0], x[1]), at::ne(x[0], 1))},
      {"logical",
       {"B n m", "B m"},
       REHEARSE_BODY(x[0] & x[1], at::logical_or(x[0], x[1]), at::logical_not(x[0]), x[0].bitwise_not())},
      {"where", {"B n m", "f+ n m", "f+ m"}, REHEARSE_BODY(at::where(x[0], x[1], x[2]))},
      {"where_number", {"B n m", "h+ n m"}, REHEARSE_BODY(at::where(x[0], x[1], 0.0), at::where(x[0], 1.0, x[1]))},
      {"clamp", {"f+ n m"}, REHEARSE_BODY(at::clamp(x[0], 0.2, 0.5), at::clamp_min(x[0], 0.3))},
      {"maximum", {"f+ n m", "f+ m"}, REHEARSE_BODY(at::maximum(x[0], x[1]), at::minimum(x[0], x[1]))},
      {"lerp", {"f+ n m", "f+ n m"}, REHEARSE_BODY(at::lerp(x[0], x[1], 0.3))},
      {"addcmul",
       {"f+ n m", "f+ n m", "f+ m"},
       REHEARSE_BODY(at::addcmul(x[0], x[1], x[2]), at::addcdiv(x[0], x[1], x[2]))},
      {"masked_fill", {"f+ n m T", "B m"}, REHEARSE_BODY(x[0].masked_fill(x[1], 0.0), x[0].masked_fill(x[1], -1))},
      {"casts",
       {"f+ n m T"},
       REHEARSE_BODY(x[0].to(at::kHalf), x[0].to(at::kDouble), x[0].to(at::kFloat), x[0].to(at::kLong),
                     x[0].to(at::kBFloat16, false, true, at::MemoryFormat::Contiguous))},
      {"clone", {"f+ n m T"}, REHEARSE_BODY(x[0].clone(), x[0].clone(at::MemoryFormat::Contiguous), x[0].contiguous())},
      {"clone_sliced", {"f+ n m S"}, REHEARSE_BODY(x[0].clone(), x[0].contiguous())},
      {"clone_expanded", {"f n m E"}, REHEARSE_BODY(x[0].clone(), x[0].contiguous())},
      {"clone_channels_last",
       {"f+ n 3 m 5 CL"},
       REHEARSE_BODY(x[0].clone(), x[0].contiguous(), x[0].contiguous(at::MemoryFormat::ChannelsLast))},
      {"in_place",
       {"f n m", "f m"},
       [](const Tensors& x) {
         at::Tensor y = x[0] * 2;
         y.add_(x[1]).mul_(0.5).relu_().masked_fill_(x[1] > 0.5, 0.0).clamp_(0, 1).div_(3).copy_(x[1]);
         return Tensors{y};
       }},
      {"in_place_of_view",
       {"f+ n m"},
       [](const Tensors& x) {
         at::Tensor y = x[0] * 2;
         y.select(0, 0).zero_();
         y.t().add_(1);
         return Tensors{y, y.t()};
       }},
      {"dropout", {"f+ n m"}, REHEARSE_BODY(at::dropout(x[0], 0.5, true), at::dropout(x[0], 0.5, false))},
      {"native_dropout", {"f+ n m T"}, REHEARSE_BODY(at::native_dropout(x[0], 0.5, true))},
      {"random_in_place",
       {"f n m"},
       [](const Tensors& x) {
         at::Tensor y = x[0].clone();
         y.uniform_();
         y.normal_();
         y.bernoulli_(0.5);
         y.random_();
         return Tensors{y, at::bernoulli(x[0]), at::rand_like(x[0]), at::randn_like(x[0])};
       }},
      {"conjugates",
       {"c+ n m"},
       REHEARSE_BODY(x[0].conj(), at::real(x[0]), at::imag(x[0]), x[0].conj().resolve_conj())},
      {"threshold", {"f+ n m"}, REHEARSE_BODY(at::threshold(x[0], 0.5, 0.0), at::nan_to_num(x[0]), at::sign(x[0]))},
      {"bit_operations",
       {"l n m", "i m"},
       REHEARSE_BODY(x[0] % 2, at::remainder(x[0], x[1] + 1), x[0] | x[1], at::floor_divide(x[0], 2))},
  };
}

}  // namespace rehearse::capture::test
