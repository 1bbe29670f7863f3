// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include <ATen/core/enum_tag.h>

#include "differential/operators/trial.h"

namespace rehearse_test::differential {
namespace {

bool writes(const c10::Argument& argument) { return argument.alias_info() && argument.alias_info()->isWrite(); }

bool is_tagged(const c10::OperatorHandle& op, at::Tag tag) {
  const auto tags = op.getTags();
  return std::find(tags.begin(), tags.end(), tag) != tags.end();
}

}  // namespace

bool takes_tensors(const c10::FunctionSchema& schema) {
  const auto& arguments = schema.arguments();
  return std::any_of(arguments.begin(), arguments.end(), [](const c10::Argument& argument) {
    return !argument.is_out() && argument.type()->annotation_str().find("Tensor") != std::string::npos;
  });
}

std::string family_of(const c10::OperatorHandle& op) {
  const c10::FunctionSchema& schema = op.schema();
  const std::string& full = schema.name();
  if (!full.starts_with("aten::")) return "other namespaces";
  const std::string name = full.substr(6);
  const auto& arguments = schema.arguments();
  const auto& returns = schema.returns();
  const auto is_out = [](const c10::Argument& argument) { return argument.is_out(); };
  const auto is_view = [](const c10::Argument& result) { return result.alias_info() && !writes(result); };
  if (std::any_of(arguments.begin(), arguments.end(), is_out)) return "with `out`";
  if (name.ends_with("_backward")) return "backward of others";
  if (name.starts_with("_foreach_") || name.starts_with("_fused_ad") || name.starts_with("_fused_sgd")) {
    return "`_foreach` and fused optimizers";
  }
  if (std::any_of(arguments.begin(), arguments.end(), writes)) return "in place";
  if (std::any_of(returns.begin(), returns.end(), is_view)) return "views";
  if (name.starts_with("linalg_") || name.starts_with("_linalg_")) return "`linalg`";
  if (name.starts_with("fft_") || name.starts_with("_fft_")) return "`fft`";
  if (name.starts_with("special_")) return "`special`";
  if (!takes_tensors(schema)) return "without tensor arguments";
  if (is_tagged(op, at::Tag::nondeterministic_seeded)) return "random";
  return is_tagged(op, at::Tag::pointwise) ? "pointwise" : "all else in `aten`";
}

}  // namespace rehearse_test::differential
