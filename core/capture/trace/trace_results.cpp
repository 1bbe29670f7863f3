// SPDX-License-Identifier: BSD-3-Clause
// What a recorded operator gave: which fakes have which node's value, and the symbols that come with them.
#include <utility>

#include <ATen/core/List.h>

#include <rehearse_internal/capture/fake_tensor.h>
#include <rehearse_internal/shapes/sym_node.h>

#include "capture/fake/call/tensors_in.h"
#include "capture/trace/tracer.h"

namespace rehearse::capture {

using graph::Node;
using torch::jit::Stack;

c10::IValue Tracer::note_result(const c10::IValue& result, Node& node, std::vector<std::int64_t> path,
                                const Stack& arguments, const Treatment& treatment) {
  if (result.isTensor()) {
    if (!result.toTensor().defined()) return result;
    return note_tensor(result.toTensor(), node, std::move(path), arguments, treatment);
  }
  if (!result.isTensorList()) return result;
  c10::List<at::Tensor> list;
  path.push_back(0);
  for (const at::Tensor& item : result.toTensorVector()) {
    list.push_back(note_tensor(item, node, path, arguments, treatment));
    ++path.back();
  }
  return list;
}

at::Tensor Tracer::note_tensor(const at::Tensor& fake, Node& node, std::vector<std::int64_t> path,
                               const Stack& arguments, const Treatment& treatment) {
  bool is_written = false;
  bool is_argument = false;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    for_each_tensor(arguments[i], [&](const at::Tensor& argument) {
      if (!argument.is_same(fake)) return;
      is_argument = true;
      is_written = is_written || treatment.written[i];
    });
  }
  if (!is_argument || is_written) note_views(fake, arguments, treatment);
  note_symbols(fake, node, path);
  values_.add(fake, node, std::move(path));
  const at::Tensor real = inputs_.real_of(fake);
  const bool is_made_inside = real.defined() && inputs_.find(fake_id(fake))->input.is_made_inside;
  return real.defined() && !is_made_inside ? real : fake;
}

void Tracer::note_views(const at::Tensor& fake, const Stack& arguments, const Treatment& treatment) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!treatment.viewed[i]) continue;
    for_each_tensor(arguments[i], [&](const at::Tensor& argument) {
      if (share_storage(argument, fake)) families_.join(fake, argument);
    });
  }
}

void Tracer::note_history(const Stack& arguments, const Treatment& treatment, Node& node) {
  std::vector<at::Tensor> written;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!treatment.written[i]) continue;
    for_each_tensor(arguments[i], [&](const at::Tensor& argument) { written.push_back(argument); });
  }
  for (const at::Tensor& tensor : written) {
    if (!tensor.requires_grad()) continue;
    for (const at::Tensor& member : families_.family_of(tensor)) {
      if (member.requires_grad()) continue;
      if (node.meta().brings_history == 0) node.meta().brings_history = ++brought_;
      member.set_requires_grad(true);
      values_.note_history(member, brought_);
    }
  }
}

// Sizes that only the data tells, such as that of nonzero(): the node brings their symbols into being.
void Tracer::note_symbols(const at::Tensor& fake, Node& node, const std::vector<std::int64_t>& path) {
  const auto sizes = fake.sym_sizes();
  for (std::size_t dim = 0; dim < sizes.size(); ++dim) {
    if (sizes[dim].maybe_as_int()) continue;
    const shapes::Expr expression = shapes::expr_of(sizes[dim]);
    if (!expression.is_symbol() || !shapes::is_unbacked_name(expression.symbol_name())) continue;
    const std::string& symbol = expression.symbol_name();
    if (symbols_.knows_symbol(symbol) || sizes_.contains(symbol)) continue;
    sizes_.emplace(symbol, SymbolSource{&node, path, static_cast<std::int64_t>(dim)});
    node.meta().unbacked_bindings.push_back(symbol);
  }
}

Node& Tracer::node_of_symbol(const std::string& symbol) {
  const auto found = sizes_.find(symbol);
  if (found == sizes_.end()) return inputs_.node_of_symbol(symbol);
  Node* value = found->second.node;
  for (const std::int64_t index : found->second.path) value = &graph_.item(*value, index);
  Node& size = graph_.call("torch.ops.aten.sym_size.int", {*value, found->second.dim});
  symbols_.bind_symbol(symbol, size);
  return size;
}

}  // namespace rehearse::capture
