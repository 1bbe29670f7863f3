// SPDX-License-Identifier: BSD-3-Clause
#include "flop_formulas.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include <ATen/core/Tensor.h>

namespace rehearse::sim {
namespace {

using Arguments = c10::ArrayRef<c10::IValue>;
using Sizes = c10::IntArrayRef;

Sizes sizes(Arguments arguments, std::size_t which) { return arguments[which].toTensor().sizes(); }

double product(Sizes sizes) { return std::accumulate(sizes.begin(), sizes.end(), 1.0, std::multiplies<>()); }

// Shapes: [.., m, k] times [.., k, n].
double matrix_product(Sizes left, Sizes right) { return 2 * product(left) * static_cast<double>(right.back()); }

// Counts two products: scores = query x key, and scores x value.
double attention(Sizes query, Sizes key, Sizes value) {
  const auto scores = product(query.slice(0, 3)) * static_cast<double>(key[2]);
  return 2 * scores * static_cast<double>(query[3] + value[3]);
}

// Counts five products: the scores, computed again; the gradients of scores and value; the gradients of query and key.
double attention_backward(Sizes query, Sizes key, Sizes value) {
  const auto scores = product(query.slice(0, 3)) * static_cast<double>(key[2]);
  return 2 * scores * static_cast<double>(3 * query[3] + 2 * value[3]);
}

// Arguments: x, weight, bias, stride, padding, dilation, transposed.
Flops convolution(Arguments arguments) {
  const auto x = sizes(arguments, 0);
  const double of_a_point = 2 * product(sizes(arguments, 1)) * static_cast<double>(x[0]);
  if (arguments[6].toBool()) return {of_a_point * product(x.slice(2))};
  return {0, of_a_point};
}

// Arguments: grad_out, x, weight, bias sizes, stride, padding, dilation, transposed, output padding, groups, output
// mask.
Flops convolution_backward(Arguments arguments) {
  const auto grad_out = sizes(arguments, 0);
  const auto x = sizes(arguments, 1);
  const auto weight = sizes(arguments, 2);
  const bool transposed = arguments[7].toBool();
  const auto mask = arguments[10].toBoolList();
  double flops = 0;
  if (mask.get(0)) {
    const auto points = (transposed ? x : grad_out).slice(2);
    flops += 2 * product(weight) * static_cast<double>(grad_out[0]) * product(points);
  }
  if (mask.get(1)) {
    const double channels = static_cast<double>((transposed ? grad_out : x)[1]);
    flops += 2 * product(transposed ? x : grad_out) * channels * product(weight.slice(2));
  }
  return {flops};
}

struct FlopFormula {
  std::string_view name;
  Flops (*flops)(Arguments);
};

constexpr FlopFormula kFormulas[] = {
    {"_scaled_dot_product_cudnn_attention",
     [](Arguments a) { return Flops{attention(sizes(a, 0), sizes(a, 1), sizes(a, 2))}; }},
    {"_scaled_dot_product_cudnn_attention_backward",
     [](Arguments a) { return Flops{attention_backward(sizes(a, 1), sizes(a, 2), sizes(a, 3))}; }},
    {"_scaled_dot_product_efficient_attention",
     [](Arguments a) { return Flops{attention(sizes(a, 0), sizes(a, 1), sizes(a, 2))}; }},
    {"_scaled_dot_product_efficient_attention_backward",
     [](Arguments a) { return Flops{attention_backward(sizes(a, 1), sizes(a, 2), sizes(a, 3))}; }},
    {"_scaled_dot_product_flash_attention",
     [](Arguments a) { return Flops{attention(sizes(a, 0), sizes(a, 1), sizes(a, 2))}; }},
    {"_scaled_dot_product_flash_attention_backward",
     [](Arguments a) { return Flops{attention_backward(sizes(a, 1), sizes(a, 2), sizes(a, 3))}; }},
    {"_scaled_dot_product_flash_attention_for_cpu",
     [](Arguments a) { return Flops{attention(sizes(a, 0), sizes(a, 1), sizes(a, 2))}; }},
    {"_scaled_dot_product_flash_attention_for_cpu_backward",
     [](Arguments a) { return Flops{attention_backward(sizes(a, 1), sizes(a, 2), sizes(a, 3))}; }},
    {"_scaled_mm", [](Arguments a) { return Flops{matrix_product(sizes(a, 0), sizes(a, 1))}; }},
    {"addmm", [](Arguments a) { return Flops{matrix_product(sizes(a, 1), sizes(a, 2))}; }},
    {"baddbmm", [](Arguments a) { return Flops{matrix_product(sizes(a, 1), sizes(a, 2))}; }},
    {"bmm", [](Arguments a) { return Flops{matrix_product(sizes(a, 0), sizes(a, 1))}; }},
    {"convolution", convolution},
    {"convolution_backward", convolution_backward},
    {"convolution_overrideable", convolution},
    {"mm", [](Arguments a) { return Flops{matrix_product(sizes(a, 0), sizes(a, 1))}; }},
};
static_assert(std::is_sorted(std::begin(kFormulas), std::end(kFormulas),
                             [](const FlopFormula& a, const FlopFormula& b) { return a.name < b.name; }));

}  // namespace

Flops flops_of(std::string_view name, c10::ArrayRef<c10::IValue> arguments) {
  if (name.ends_with('_')) name.remove_suffix(1);
  const auto* const found =
      std::lower_bound(std::begin(kFormulas), std::end(kFormulas), name,
                       [](const FlopFormula& formula, auto wanted) { return formula.name < wanted; });
  return found != std::end(kFormulas) && found->name == name ? found->flops(arguments) : Flops{};
}

}  // namespace rehearse::sim
