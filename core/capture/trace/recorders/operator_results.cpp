// SPDX-License-Identifier: BSD-3-Clause
#include "capture/trace/recorders/operator_results.h"

#include <utility>

#include <ATen/core/List.h>

#include <rehearse_internal/capture/fake_tensor.h>
#include <rehearse_internal/shapes/sym_node.h>

#include "capture/fake/call/tensors_in.h"
#include "capture/trace/operators/requires_grad.h"

namespace rehearse::capture {

using torch::jit::Stack;

namespace {

graph::ValueMeta meta_of_result(const c10::IValue& result) {
  if (result.isTensor()) {
    return result.toTensor().defined() ? graph::ValueMeta(meta_of(result.toTensor())) : graph::ValueMeta();
  }
  if (!result.isList()) return {};
  graph::ValueMeta::List items;
  for (const c10::IValue& item : result.toListRef()) items.push_back(meta_of_result(item));
  return items;
}

graph::ValueMeta meta_of_results(const Stack& results) {
  if (results.size() == 1) return meta_of_result(results.front());
  graph::ValueMeta::List items;
  for (const c10::IValue& result : results) items.push_back(meta_of_result(result));
  return items;
}

}  // namespace

void OperatorResults::note(Stack& results) {
  if (!results.empty()) node_.meta().set_value(meta_of_results(results));
  for (std::size_t i = 0; i < results.size(); ++i) {
    Path path;
    if (results.size() > 1) path.push_back(static_cast<std::int64_t>(i));
    results[i] = note_value(results[i], std::move(path));
  }
}

c10::IValue OperatorResults::note_value(const c10::IValue& result, Path path) {
  if (result.isTensor()) {
    if (!result.toTensor().defined()) return result;
    return note_tensor(result.toTensor(), std::move(path));
  }
  if (!result.isTensorList()) return result;
  c10::List<at::Tensor> list;
  path.push_back(0);
  for (const at::Tensor& item : result.toTensorVector()) {
    list.push_back(note_tensor(item, path));
    ++path.back();
  }
  return list;
}

at::Tensor OperatorResults::note_tensor(const at::Tensor& fake, Path path) {
  bool is_written = false;
  bool is_argument = false;
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    for_each_tensor(arguments_[i], [&](const at::Tensor& argument) {
      if (!argument.is_same(fake)) return;
      is_argument = true;
      is_written = is_written || treatment_.written[i];
    });
  }
  if (!is_argument || is_written) note_views(fake);
  note_symbols(fake, path);
  recording_.values.add(fake, node_, std::move(path));
  Inputs& inputs = recording_.inputs;
  const at::Tensor real = inputs.real_of(fake);
  const bool is_made_inside = real.defined() && inputs.find(fake_id(fake))->input.is_made_inside;
  return real.defined() && !is_made_inside ? real : fake;
}

void OperatorResults::note_views(const at::Tensor& fake) {
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    if (!treatment_.viewed[i]) continue;
    for_each_tensor(arguments_[i], [&](const at::Tensor& argument) {
      if (share_storage(argument, fake)) recording_.families.join(fake, argument);
    });
  }
}

void OperatorResults::note_history() {
  for (const at::Tensor& tensor : written_with_grad(treatment_, arguments_)) {
    for (const at::Tensor& member : recording_.families.family_of(tensor)) {
      if (member.requires_grad()) continue;
      std::size_t& number = node_.meta().brings_history;
      if (number == 0) number = recording_.next_history();
      member.set_requires_grad(true);
      recording_.values.note_history(member, number);
    }
  }
}

// Some sizes depend on data, such as the size of nonzero()'s result. The node defines their symbols.
void OperatorResults::note_symbols(const at::Tensor& fake, const Path& path) {
  const auto sizes = fake.sym_sizes();
  for (std::size_t dim = 0; dim < sizes.size(); ++dim) {
    if (sizes[dim].maybe_as_int()) continue;
    const shapes::Expr expression = shapes::expr_of(sizes[dim]);
    if (!expression.is_symbol() || !shapes::is_unbacked_name(expression.symbol_name())) continue;
    recording_.note_size(expression.symbol_name(), node_, path, static_cast<std::int64_t>(dim));
  }
}

}  // namespace rehearse::capture
