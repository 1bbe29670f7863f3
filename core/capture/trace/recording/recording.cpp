// SPDX-License-Identifier: BSD-3-Clause
#include "capture/trace/recording/recording.h"

#include <algorithm>
#include <utility>

#include <rehearse_internal/capture/errors.h>
#include <rehearse_internal/capture/fake_tensor.h>
#include <rehearse_internal/exec/check.h>
#include <rehearse_internal/shapes/shape_env.h>

#include "capture/fake/call/tensors_in.h"
#include "capture/trace/operators/passing_memory.h"

namespace rehearse::capture {

using graph::Node;

Recording::Recording(std::shared_ptr<shapes::ShapeEnv> shape_env, std::vector<NamedTensor> of_module)
    : shapes(std::move(shape_env)),
      mode(shapes, nullptr, /*is_traced=*/true),
      symbols([this](const std::string& target,
                     graph::List arguments) -> Node& { return graph.call(target, std::move(arguments)); },
              [this](const std::string& symbol) -> Node& { return node_of_symbol(symbol); }),
      inputs(graph, symbols, families, std::move(of_module)),
      values(graph, inputs, families),
      storages(inputs),
      modes(graph),
      segments(graph, inputs, symbols),
      context_{[this](const at::Tensor& tensor) -> graph::Argument { return node_of(tensor); }, symbols, graph.site()} {
}

at::Tensor Recording::fake_of(const at::Tensor& tensor) {
  if (!tensor.defined() || is_fake(tensor)) return tensor;
  const bool is_new = !inputs.has(tensor);
  if (is_new && !inputs.name_of(tensor) && has_passing_memory(tensor)) {
    throw NotCapturable("a tensor of memory that it does not own (from_blob()) is used in a captured function",
                        "The memory may be gone when the graph runs: use at::tensor(), a static array, or from_blob() "
                        "with a deleter.",
                        graph.site());
  }
  at::Tensor fake = inputs.source_of(mode, tensor).fake;
  const auto is_it = [&](const at::Tensor& made) { return made.is_same(tensor); };
  if (is_new && std::any_of(constants_.begin(), constants_.end(), is_it)) copy_constant(fake);
  return fake;
}

void Recording::copy_constant(const at::Tensor& fake) {
  Inputs::Source* const source = inputs.find(fake_id(fake));
  REHEARSE_CHECK(source != nullptr && !source->input.is_made_inside, source != nullptr);
  source->input.is_made_inside = true;
  Node& copy = graph.call("torch.ops.aten.clone.default", {values.node_of(fake)});
  copy.meta().set_value(meta_of(fake));
  values.add(fake, copy, {});
}

c10::IValue Recording::with_fakes(const c10::IValue& value) {
  if (value.isTensor()) return fake_of(value.toTensor());
  if (!value.isList()) return value;
  bool has_real = false;
  for_each_tensor(value, [&](const at::Tensor& tensor) { has_real = has_real || !is_fake(tensor); });
  if (!has_real) return value;
  const auto list = value.toList();
  c10::impl::GenericList fakes(list.elementType());
  for (const c10::IValue& item : value.toListRef()) fakes.push_back(with_fakes(item));
  return fakes;
}

Node& Recording::node_of(const at::Tensor& tensor) { return values.node_of(fake_of(tensor)); }

void Recording::note_owner(const torch::jit::Stack& arguments) {
  const std::string* name = nullptr;
  for (const c10::IValue& argument : arguments) {
    for_each_tensor(argument, [&](const at::Tensor& tensor) {
      if (name == nullptr && !is_fake(tensor)) name = inputs.name_of(tensor);
    });
  }
  if (name) graph.set_owner(owner_of(*name));
}

void Recording::note_size(const std::string& symbol, Node& node, const std::vector<std::int64_t>& path,
                          std::int64_t dim) {
  if (symbols.knows_symbol(symbol) || sizes_.contains(symbol)) return;
  sizes_.emplace(symbol, SymbolSource{&node, path, dim});
  node.meta().unbacked_bindings.push_back(symbol);
}

void Recording::bind_sizes() {
  for (const auto& [symbol, source] : sizes_) {
    if (!symbols.knows_symbol(symbol)) node_of_symbol(symbol);
  }
}

Node& Recording::node_of_symbol(const std::string& symbol) {
  const auto found = sizes_.find(symbol);
  if (found == sizes_.end()) return inputs.node_of_symbol(symbol);
  Node* value = found->second.node;
  for (const std::int64_t index : found->second.path) value = &graph.item(*value, index);
  Node& size = graph.call("torch.ops.aten.sym_size.int", {*value, found->second.dim});
  symbols.bind_symbol(symbol, size);
  return size;
}

void Recording::add_asserts() {
  REHEARSE_CHECK(asserts_added_ <= shapes->asserts().size(), asserts_added_, shapes->asserts().size());
  // By index, because making nodes may add further asserts.
  for (; asserts_added_ < shapes->asserts().size(); ++asserts_added_) {
    const shapes::Guard fact = shapes->asserts()[asserts_added_];
    const std::vector<std::string> symbols_of_fact = fact.condition.symbols();
    const bool has_values =
        std::all_of(symbols_of_fact.begin(), symbols_of_fact.end(), [this](const std::string& symbol) {
          return !shapes::is_unbacked_name(symbol) || symbols.knows_symbol(symbol) || sizes_.contains(symbol);
        });
    if (!has_values) continue;  // an operator's internal size: no value of the graph has it
    graph.set_origin(fact.where);
    graph.call("torch.ops.aten._assert_scalar.default",
               {symbols.truth_of(fact.condition), "Runtime assertion failed for expression " + fact.condition.text()});
  }
}

void Recording::skip_asserts() { asserts_added_ = shapes->asserts().size(); }

}  // namespace rehearse::capture
