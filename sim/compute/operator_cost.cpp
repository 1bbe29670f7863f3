// SPDX-License-Identifier: BSD-3-Clause
#include "operator_cost.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <string>

#include <ATen/core/Tensor.h>
#include <fmt/format.h>
#include <rehearse_internal/operators/operator_name.h>

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

// The flops of aten::<name> (without overload name), in place or not: a matrix product, a convolution or attention, by
// the formulas of torch.utils.flop_counter. Attention on the CPU, which has no formula there, counts as on a GPU. Zero
// for other operators, and for those that convolution and attention call inside, such as aten::_convolution.
Flops flops_of(std::string_view name, c10::ArrayRef<c10::IValue> arguments) {
  if (name.ends_with('_')) name.remove_suffix(1);
  const auto* const found =
      std::lower_bound(std::begin(kFormulas), std::end(kFormulas), name,
                       [](const FlopFormula& formula, auto wanted) { return formula.name < wanted; });
  return found != std::end(kFormulas) && found->name == name ? found->flops(arguments) : Flops{};
}

// Longer durations are cut to this (73 years), so that sums stay in range.
constexpr double kOperatorNanosecondsMax = 0x1p61;

double bytes_of_tensor(const at::Tensor& tensor) {
  if (!tensor.defined()) return 0;
  if (tensor.layout() == c10::kSparse) return bytes_of_tensor(tensor._indices()) + bytes_of_tensor(tensor._values());
  return static_cast<double>(tensor.numel()) * static_cast<double>(tensor.element_size());
}

double bytes_of_tensor(const c10::IValue& value) {
  if (value.isTensor()) return bytes_of_tensor(value.toTensor());
  double sum = 0;
  if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) sum += bytes_of_tensor(tensor);
  } else if (value.isList()) {
    for (const c10::IValue& element : value.toListRef()) sum += bytes_of_tensor(element);
  }
  return sum;
}

bool is_view_argument(const c10::Argument& returned) {
  return returned.alias_info() != nullptr && !returned.alias_info()->isWrite();
}

// True for a tensor that the caller passes only to receive the result.
bool is_out(const c10::Argument& argument) {
  return argument.kwarg_only() && argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

bool gives_fresh_memory(std::string_view name) {
  static constexpr std::string_view kNames[] = {"_unsafe_view", "resize_", "resize_as_", "set_"};
  return name.starts_with("empty") || name.starts_with("new_empty") ||
         std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

double points_of(const c10::IValue& result) {
  double points = 1;
  for (const auto size : result.toTensor().sizes().slice(2)) points *= static_cast<double>(size);
  return points;
}

}  // namespace

OperatorCost::OperatorCost(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments) {
  const auto name = operators::name_in_namespace(schema.name());
  const auto& returns = schema.returns();
  moves_bytes_ = !gives_fresh_memory(name) && (returns.empty() || !std::ranges::all_of(returns, is_view_argument));
  if (schema.name().starts_with("aten::")) flops_ = flops_of(name, arguments);
  if (!moves_bytes_) return;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!is_out(schema.arguments()[i])) bytes_taken_ += bytes_of_tensor(arguments[i]);
  }
}

VirtualDuration OperatorCost::duration(c10::ArrayRef<c10::IValue> results, const ComputeModel& model) const {
  double seconds = 0;
  if (model.flops_per_second > 0) {
    const double flops = flops_.per_point > 0 ? flops_.per_point * points_of(results.front()) : flops_.fixed;
    seconds = flops / model.flops_per_second;
  }
  if (model.bytes_per_second > 0 && moves_bytes_) {
    double bytes = bytes_taken_;
    for (const c10::IValue& result : results) bytes += bytes_of_tensor(result);
    seconds = std::max(seconds, bytes / model.bytes_per_second);
  }
  const double nanoseconds = std::min(std::round(seconds * 1e9), kOperatorNanosecondsMax);
  return model.per_operator + VirtualDuration(static_cast<std::int64_t>(nanoseconds));
}

void require_valid(const ComputeModel& model) {
  std::string problems;
  const auto require_rate = [&](const char* field, double rate) {
    if (rate >= 0 && std::isfinite(rate)) return;
    problems += fmt::format("{}WorldOptions::compute.{} is {}; it is 0 (takes no time) or more, and finite",
                            problems.empty() ? "" : "\n", field, rate);
  };
  require_rate("flops_per_second", model.flops_per_second);
  require_rate("bytes_per_second", model.bytes_per_second);
  if (model.per_operator < VirtualDuration::zero()) {
    problems += fmt::format("{}WorldOptions::compute.per_operator is {} ns; it is 0 or more",
                            problems.empty() ? "" : "\n", model.per_operator.count());
  }
  if (!problems.empty()) throw std::invalid_argument(problems);
}

}  // namespace rehearse::sim
