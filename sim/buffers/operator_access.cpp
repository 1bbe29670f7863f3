// SPDX-License-Identifier: BSD-3-Clause
#include "operator_access.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include <ATen/core/enum_tag.h>
#include <ATen/core/function_schema.h>
#include <rehearse_internal/operators/operator_name.h>

namespace rehearse::sim {
namespace {

template <std::size_t Count>
bool is_one_of(const std::string_view (&names)[Count], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// Operators that take a tensor only for its sizes, its type or its device.
bool looks_at_sizes_only(std::string_view name) {
  static constexpr std::string_view kNames[] = {"empty_like",
                                                "full_like",
                                                "ones_like",
                                                "rand_like",
                                                "randint_like",
                                                "randn_like",
                                                "zeros_like",
                                                "new_empty",
                                                "new_full",
                                                "new_ones",
                                                "new_zeros",
                                                "new_empty_strided",
                                                "dim",
                                                "is_same_size",
                                                "is_set_to",
                                                "is_pinned",
                                                "numel",
                                                "record_stream",
                                                "size",
                                                "storage_offset",
                                                "stride",
                                                "sym_numel",
                                                "sym_size",
                                                "sym_storage_offset",
                                                "sym_stride",
                                                "result_type",
                                                "is_complex",
                                                "is_signed",
                                                "is_neg",
                                                "is_conj",
                                                "_is_zerotensor",
                                                "is_floating_point",
                                                "_assert_tensor_metadata",
                                                "_has_same_storage_numel",
                                                "_shape_as_tensor"};
  return is_one_of(kNames, name);
}

// Operators that write all of their first argument and do not read it.
bool overwrites(std::string_view name) {
  static constexpr std::string_view kNames[] = {
      "copy_",   "fill_",       "zero_",      "normal_",        "uniform_",       "random_",     "bernoulli_",
      "cauchy_", "log_normal_", "geometric_", "_foreach_copy_", "_foreach_zero_", "exponential_"};
  return is_one_of(kNames, name);
}

bool may_resize(std::string_view name) {
  static constexpr std::string_view kNames[] = {"_resize_output_", "resize_", "resize_as_", "set_"};
  return is_one_of(kNames, name);
}

bool is_view(const c10::Argument& returned) {
  return returned.alias_info() != nullptr && !returned.alias_info()->isWrite();
}

}  // namespace

OperatorAccess::OperatorAccess(const c10::OperatorHandle& op) {
  const auto& schema = op.schema();
  const auto name = operators::name_in_namespace(schema.name());
  arguments.resize(schema.arguments().size(), Of::nothing);
  resizes = may_resize(name);
  const auto& returns = schema.returns();
  const bool views = !returns.empty() && std::ranges::all_of(returns, is_view);
  // Operators with the tag inplace_view, such as t_(), squeeze_() and resize_(), change a tensor's sizes, strides or
  // storage. They compute nothing from its elements.
  if (views || looks_at_sizes_only(name) || op.hasTag(at::Tag::inplace_view)) return;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto& argument = schema.arguments()[i];
    const bool writes = argument.alias_info() != nullptr && argument.alias_info()->isWrite();
    const bool is_whole = argument.is_out() || (i == 0 && overwrites(name));
    arguments[i] = !writes ? Of::read : is_whole ? Of::overwrite : Of::write;
  }
  touches_data = true;
}

}  // namespace rehearse::sim
