// SPDX-License-Identifier: BSD-3-Clause
#include "differential/operators/out_dtypes.h"

#include <map>
#include <string>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>

#include "differential/operators/sample.h"

namespace rehearse_test::differential {
namespace {

std::size_t arguments_before_out(const c10::FunctionSchema& schema) {
  std::size_t count = 0;
  while (count < schema.arguments().size() && !schema.arguments()[count].is_out()) ++count;
  return count;
}

bool returns_what_goes_to_out(const c10::FunctionSchema& variant, const c10::FunctionSchema& schema) {
  const std::size_t before = arguments_before_out(schema);
  if (variant.is_mutable() || variant.arguments().size() != before) return false;
  for (std::size_t i = 0; i < before; ++i) {
    const c10::Argument &of_variant = variant.arguments()[i], &of_schema = schema.arguments()[i];
    if (of_variant.name() != of_schema.name() || *of_variant.type() != *of_schema.type()) return false;
  }
  return variant.returns().size() == schema.arguments().size() - before;
}

// All overloads of a name, in a fixed order.
const std::vector<c10::OperatorHandle>& overloads_of(const std::string& name) {
  static const auto all = [] {
    std::map<std::string, std::map<std::string, c10::OperatorHandle>> found;
    for (const c10::OperatorName& each : c10::Dispatcher::singleton().getAllOpNames()) {
      if (const auto op = c10::Dispatcher::singleton().findSchema(each)) {
        found[each.name].emplace(each.overload_name, *op);
      }
    }
    std::map<std::string, std::vector<c10::OperatorHandle>> lists;
    for (const auto& [op_name, overloads] : found) {
      for (const auto& [overload, op] : overloads) lists[op_name].push_back(op);
    }
    return lists;
  }();
  return all.at(name);
}

}  // namespace

std::optional<std::vector<std::vector<c10::ScalarType>>> out_dtypes(const c10::FunctionSchema& schema,
                                                                    const torch::jit::Stack& arguments) {
  for (const c10::OperatorHandle& variant : overloads_of(schema.name())) {
    if (!returns_what_goes_to_out(variant.schema(), schema)) continue;
    const at::NoGradGuard no_grad;
    torch::jit::Stack stack = arguments;
    variant.callBoxed(stack);
    std::vector<std::vector<c10::ScalarType>> dtypes;
    for (const c10::IValue& result : stack) {
      dtypes.emplace_back();
      for (const at::Tensor& tensor : tensors_in({result})) {
        dtypes.back().push_back(tensor.defined() ? tensor.scalar_type() : at::kDouble);
      }
    }
    return dtypes;
  }
  return std::nullopt;
}

}  // namespace rehearse_test::differential
