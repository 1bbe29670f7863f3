// SPDX-License-Identifier: BSD-3-Clause
#include "capture/fake/call/operator_facts.h"

#include <algorithm>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include <ATen/core/enum_tag.h>

#include <rehearse_internal/exec/fiber_local.h>

namespace rehearse::capture {
namespace {

using c10::DispatchKey;

// The schema notes the alias set of a list at its elements: Tensor(a)[].
const std::unordered_set<c10::Symbol>* alias_set(const c10::Argument& argument, bool after) {
  const c10::AliasInfo* info = argument.alias_info();
  if (!info) return nullptr;
  const auto* sets = after ? &info->afterSets() : &info->beforeSets();
  if (sets->empty() && !info->containedTypes().empty()) {
    const c10::AliasInfo& element = info->containedTypes().front();
    sets = after ? &element.afterSets() : &element.beforeSets();
  }
  return sets->empty() ? nullptr : sets;
}

std::optional<std::size_t> aliased_argument(const c10::FunctionSchema& schema, const c10::Argument& result) {
  const auto* const wanted = alias_set(result, true);
  if (!wanted) return std::nullopt;
  for (std::size_t i = 0; i < schema.arguments().size(); ++i) {
    const auto* const found = alias_set(schema.arguments()[i], false);
    if (found && *found == *wanted) return i;
  }
  return std::nullopt;
}

bool is_tensor_list(const c10::Type& type) {
  const auto* const list = type.castRaw<c10::ListType>();
  return list && list->getElementType()->isSubtypeOf(*c10::OptionalType::ofTensor());
}

ReturnFacts facts_of_return(const c10::FunctionSchema& schema, const c10::Argument& result) {
  ReturnFacts facts;
  facts.is_tensor = result.type()->isSubtypeOf(*c10::OptionalType::ofTensor());
  facts.is_tensor_list = is_tensor_list(*result.type());
  facts.alias_of = aliased_argument(schema, result);
  facts.is_argument = facts.alias_of && result.alias_info()->isWrite();
  return facts;
}

// If an operator has its own CPU kernel, the composite kernel that Meta would use may give other strides.
bool meta_is_faithful(const c10::OperatorHandle& op) {
  if (op.hasKernelForDispatchKey(DispatchKey::Meta)) return true;
  const bool composite = op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutograd) ||
                         op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutogradNonFunctional);
  return composite && !op.hasKernelForDispatchKey(DispatchKey::CPU);
}

bool is_elementwise_without_tag(std::string_view name) {
  static const std::unordered_set<std::string_view> names = {
      "aten::elu_backward",        "aten::floor_divide",      "aten::floor_divide.Scalar", "aten::hardswish",
      "aten::hardswish_backward",  "aten::hardtanh_backward", "aten::leaky_relu",          "aten::mish_backward",
      "aten::leaky_relu_backward", "aten::softplus_backward",
  };
  return names.contains(name);
}

struct FactsTable {
  std::unordered_map<c10::OperatorHandle, std::unique_ptr<const OperatorFacts>> of;
};
const exec::FiberLocal<FactsTable> facts_table;

}  // namespace

OperatorFacts::OperatorFacts(const c10::OperatorHandle& op) : handle(op), name(c10::toString(op.operator_name())) {
  const c10::FunctionSchema& schema = op.schema();
  arguments = schema.arguments().size();
  for (const c10::Argument& result : schema.returns()) returns.push_back(facts_of_return(schema, result));
  for (std::size_t i = 0; i < arguments; ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    if (argument.name() == "device") device_argument = i;
    if (argument.name() == "layout") layout_argument = i;
    if (!argument.alias_info() || !argument.alias_info()->isWrite()) continue;
    written.push_back(i);
    writes_out = writes_out || argument.kwarg_only();
  }
  const auto tags = op.getTags();
  const auto tagged = [&](at::Tag tag) { return std::find(tags.begin(), tags.end(), tag) != tags.end(); };
  is_composite = op.hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd) &&
                 !op.hasKernelForDispatchKey(DispatchKey::CPU);
  has_meta_kernel = meta_is_faithful(op);
  is_pointwise = tagged(at::Tag::pointwise) || is_elementwise_without_tag(name);
  changes_geometry = tagged(at::Tag::inplace_view);
  is_random = tagged(at::Tag::nondeterministic_seeded);
  has_data_dependent_size = tagged(at::Tag::dynamic_output_shape) || tagged(at::Tag::data_dependent_output);
  rule = find_rule(name);
}

const OperatorFacts& facts_of(const c10::OperatorHandle& op) {
  auto& made = facts_table->of[op];
  if (!made) made = std::make_unique<const OperatorFacts>(op);
  return *made;
}

}  // namespace rehearse::capture
