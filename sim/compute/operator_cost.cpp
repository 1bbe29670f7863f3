// SPDX-License-Identifier: BSD-3-Clause
#include "operator_cost.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include <ATen/core/Tensor.h>
#include <fmt/format.h>
#include <rehearse_internal/operators/operator_name.h>

namespace rehearse::sim {
namespace {

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
  moves_bytes_ =
      !gives_fresh_memory(name) && (returns.empty() || !std::all_of(returns.begin(), returns.end(), is_view_argument));
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
