// SPDX-License-Identifier: BSD-3-Clause
#include "compile/partitions/piece_compiler.h"

#include <algorithm>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include <rehearse_internal/capture/fake_tensor.h>
#include <rehearse_internal/graph/results.h>
#include <rehearse_internal/shapes/sym_node.h>

#include "compile/partitions/eager_backend.h"
#include "compile/partitions/layout_use.h"
#include "compile/partitions/leaf_cuts.h"

namespace rehearse::compiler {
namespace {

using graph::Node;
using graph::Op;

class FakeMaker {
 public:
  FakeMaker(const graph::Node& node, const std::shared_ptr<shapes::ShapeEnv>& shapes) : node_(node), shapes_(shapes) {}

  c10::SymInt number(const graph::SymInt& value) const {
    return value.is_symbolic() ? number(value.expression()) : c10::SymInt(value.number());
  }

  c10::SymInt number(const graph::SymExpr& value) const {
    if (value.expr() == nullptr) {
      throw graph::GraphError(node_.name(), "meta", "'" + value.text() + "' is no integer expression");
    }
    return shapes::to_sym_int(shapes_, *value.expr());
  }

  at::Tensor tensor(const graph::TensorMeta& meta, const at::Tensor& alias_of) const {
    capture::TensorSpec spec;
    spec.dtype = meta.dtype;
    spec.device = meta.device;
    spec.requires_grad = meta.requires_grad;
    spec.is_conj = meta.is_conj;
    spec.is_neg = meta.is_neg;
    for (const graph::SymInt& size : meta.sizes) spec.sizes.push_back(number(size));
    for (const graph::SymInt& stride : meta.strides) spec.strides.push_back(number(stride));
    spec.storage_offset = number(meta.storage_offset);
    return capture::make_fake(spec, alias_of);
  }

  // `alias_of`: the fake whose storage the value shares; undefined: none. `other`: replaces the node's metadata; null:
  // nothing replaces them.
  c10::IValue value(const at::Tensor& alias_of, const graph::TensorMeta* other) const {
    if (other != nullptr) return tensor(*other, alias_of);
    if (const graph::TensorMeta* meta = node_.meta().tensor()) return tensor(*meta, alias_of);
    const graph::SymScalarMeta* scalar = node_.meta().value ? node_.meta().value->scalar() : nullptr;
    if (scalar && scalar->kind == graph::SymScalarMeta::Kind::Int) return number(scalar->expression);
    const bool is_work = node_.meta().value && std::holds_alternative<std::monostate>(node_.meta().value->value());
    if (is_work) return {};  // a Work or None
    throw graph::GraphError(node_.name(), "meta", "says neither tensor nor integer");
  }

 private:
  const graph::Node& node_;
  const std::shared_ptr<shapes::ShapeEnv>& shapes_;
};

// Makes a fake tensor, a symbolic integer of `shapes`, or None for each placeholder from its metadata. The tensors are
// leaves. Tensors of the same class in `memory` share memory. `others` replaces the metadata of some placeholders.
// Throws graph::GraphError for a placeholder whose metadata are missing, or describe neither a tensor, an integer nor
// None.
std::vector<c10::IValue> example_inputs(const graph::GraphModule& module,
                                        const std::shared_ptr<shapes::ShapeEnv>& shapes, const MemoryClasses& memory,
                                        const OtherInputs& others) {
  std::vector<c10::IValue> inputs;
  std::map<std::size_t, at::Tensor> of_class;
  for (const graph::Node* node : module.graph().placeholders()) {
    at::Tensor& sharing = of_class[memory.of(*node)];
    const auto other = others.find(inputs.size());
    inputs.push_back(FakeMaker(*node, shapes).value(sharing, other != others.end() ? &other->second : nullptr));
    if (inputs.back().isTensor() && !sharing.defined()) sharing = inputs.back().toTensor();
  }
  return inputs;
}

std::size_t nodes_of(const graph::GraphModule& module) {
  std::size_t nodes = 0;
  for (const Node& node : module.graph()) {
    nodes += node.op() != Op::Placeholder && node.op() != Op::Output && node.op() != Op::GetAttr;
  }
  return nodes;
}

// The nodes that a graph returns; null for an output that is no node.
std::vector<const Node*> returned_nodes(const graph::GraphModule& module) {
  std::vector<const Node*> nodes;
  for (const graph::Argument& result : graph::results_of(module.graph())) nodes.push_back(result.node());
  return nodes;
}

// The nodes of the calling graph for the outputs of a piece; null for an unused output.
std::vector<const Node*> values_of_call(const Node& call, const graph::GraphModule& piece) {
  std::vector<const Node*> values(graph::results_of(piece.graph()).size(), nullptr);
  if (values.empty()) return values;
  if (!graph::returns_list(piece.graph())) {
    values.front() = &call;
    return values;
  }
  for (const Node* user : call.users()) {
    const std::int64_t* index = user->args().size() > 1 ? user->args()[1].get_if<std::int64_t>() : nullptr;
    if (user->target() == "_operator.getitem" && index != nullptr) values.at(static_cast<std::size_t>(*index)) = user;
  }
  return values;
}

// `values`: nodes for the outputs of the piece, null for an unused output.
std::vector<OutputRole> roles_of(const std::vector<const Node*>& values, const graph::GraphModule& piece,
                                 const ValueLives& lives) {
  std::vector<OutputRole> roles;
  std::unordered_map<const Node*, std::size_t> times;  // a node returned twice is one tensor
  for (const Node* value : values) ++times[value];
  for (const Node* value : values) {
    if (value == nullptr) {
      roles.emplace_back();
    } else {
      roles.push_back({times[value] > 1 || lives.shares_when_made(*value), lives.leaves_or_is_shared(*value)});
    }
  }
  // To copy an output to its recorded layout, a call needs the values of all symbols in that layout. If the inputs of
  // the piece do not give these values, the back end must keep the recorded layout.
  const SymbolSources symbols = symbols_of(piece);
  const std::vector<graph::ValueMeta> recorded = recorded_outputs(piece);
  for (std::size_t i = 0; i < roles.size(); ++i) {
    const graph::TensorMeta* tensor = recorded[i].tensor();
    roles[i].is_fixed = roles[i].is_fixed || (tensor != nullptr && !symbols.tell_layout_of(*tensor));
  }
  return roles;
}

// True if the piece's operators, run on the inputs that the piece would get, keep the layout of every fixed output.
bool keeps_fixed_outputs(const BackendInput& input, const std::vector<OutputRole>& roles) {
  const auto recorded = recorded_outputs(*input.module), given = outputs_of(input);
  for (std::size_t i = 0; i < recorded.size(); ++i) {
    const graph::TensorMeta *is = recorded[i].tensor(), *comes = given[i].tensor();
    if (roles[i].is_fixed && is != nullptr && comes != nullptr && !same_layout(*is, *comes)) return false;
  }
  return true;
}

// The required layouts of the inputs of piece #`number`, which `call` calls.
BorderCheck::LayoutOf layouts_at(const Node& call, std::size_t number, const ValueLives& lives) {
  return [&call, number, &lives](std::size_t placeholder) {
    const Node* value = placeholder < call.args().size() ? call.args()[placeholder].node() : nullptr;
    if (value == nullptr || value->op() == Op::Placeholder || value->op() == Op::GetAttr) return BorderLayout::Guarded;
    return lives.shares_at(*value, number) ? BorderLayout::Required : BorderLayout::Copied;
  };
}

std::string reason_of_leaf(const Node& call) {
  const std::string line = call.meta().source_line();
  return "a tensor begins to require grad behind it" + (line.empty() ? "" : ", at " + line);
}

// The tensor itself becomes a leaf, so a copy must not replace it.
CompiledPiece leaf_piece(const Node& call, const std::shared_ptr<graph::GraphModule>& piece) {
  const auto as_it_is = [](std::size_t) { return BorderLayout::Guarded; };
  return {by_operators(piece).run, BorderCheck(*piece, "piece " + call.target(), as_it_is)};
}

}  // namespace

BackendInput PieceCompiler::input_of(const std::shared_ptr<graph::GraphModule>& module, const std::string& name,
                                     const MemoryClasses& memory, const std::vector<OutputRole>& roles,
                                     const OtherInputs& others) {
  BackendInput input{module, example_inputs(*module, shapes_, memory, others), shapes_, name};
  for (const OutputRole& role : roles) input.fixed_layouts.push_back(role.is_fixed);
  return input;
}

CompileCache::Made PieceCompiler::make(const BackendInput& input) {
  CompileCache::Made made = options_.cache != nullptr ? options_.cache->compile(input, backend_)
                                                      : CompileCache::Made{backend_.compile(input)};
  if (made.graph) return made;
  throw std::invalid_argument("the back end '" + backend_.name() + "' returned no compiled graph for graph " +
                              input.name);
}

PieceCompiler::Made PieceCompiler::compile(BackendInput input, const std::vector<OutputRole>& roles) {
  std::string eager_because;
  input.note_eager = [&](const std::string& why) { eager_because = why; };
  if (options_.dump != nullptr) options_.dump->write(input.name, *input.module);
  const CompileCache::Made made = make(input);
  const CompiledGraph& compiled = made.graph;
  const GraphOfBackend whose{backend_.name(), input.name};
  std::vector<graph::ValueMeta> given = outputs_of(input);
  if (compiled.outputs) check_statement(*compiled.outputs, given, roles, whose);
  std::vector<graph::ValueMeta> stated = compiled.outputs.value_or(std::move(given));
  graphs_.push_back({.name = input.name,
                     .nodes = nodes_of(*input.module),
                     .eager_because = std::move(eager_because),
                     .cache = made.use,
                     .cache_reason = made.reason,
                     .module = input.module});
  return {fitted(compiled, *input.module, stated, roles, whose, options_.check_backend), std::move(stated)};
}

CompiledGraph::Run PieceCompiler::compile_whole(const std::shared_ptr<graph::GraphModule>& module,
                                                const InputMemory& inputs) {
  const MemoryClasses memory(*module, inputs);
  const ValueLives lives(*module, memory);
  const std::vector<OutputRole> roles = roles_of(returned_nodes(*module), *module, lives);
  return compile(input_of(module, "forward", memory, roles, {}), roles).run;
}

std::map<std::string, CompiledPiece> PieceCompiler::compile_pieces(const graph::GraphModule& split,
                                                                   const InputMemory& inputs) {
  const MemoryClasses memory(split, inputs);
  const ValueLives lives(split, memory);
  std::map<std::string, CompiledPiece> pieces;
  std::size_t number = 0;
  for (const Node& node : split.graph()) {
    if (node.op() != Op::CallModule) continue;
    if (const auto piece = split.find_submodule(node.target())) {
      pieces[node.target()] = compile_call(node, piece, number, memory, lives);
    }
    ++number;
  }
  return pieces;
}

CompiledPiece PieceCompiler::compile_call(const Node& call, const std::shared_ptr<graph::GraphModule>& piece,
                                          std::size_t number, const MemoryClasses& memory, const ValueLives& lives) {
  const std::vector<const Node*> values = values_of_call(call, *piece);
  const std::vector<OutputRole> roles = roles_of(values, *piece, lives);
  if (makes_leaf(*piece)) {
    if (!graphs_.empty()) graphs_.back().reason = reason_of_leaf(call);
    return leaf_piece(call, piece);
  }
  OtherInputs others = other_inputs(call, *piece);
  BackendInput input = input_of(piece, call.target(), memory, roles, others);
  if (!others.empty() && !(takes_layouts(input) && keeps_fixed_outputs(input, roles))) {
    others.clear();
    for (const graph::Argument& argument : call.args()) others_.erase(argument.node());
    input = input_of(piece, call.target(), memory, roles, others);
  }
  Made made = compile(std::move(input), roles);
  note_outputs(values, *piece, made.outputs, roles);
  const auto compiled_for = [&](std::size_t placeholder) {
    const auto other = others.find(placeholder);
    return other != others.end() ? &other->second : nullptr;
  };
  return {std::move(made.run),
          BorderCheck(*piece, "piece " + call.target(), layouts_at(call, number, lives), compiled_for)};
}

OtherInputs PieceCompiler::other_inputs(const Node& call, const graph::GraphModule& piece) const {
  OtherInputs others;
  const auto placeholders = piece.graph().placeholders();
  for (std::size_t i = 0; i < call.args().size(); ++i) {
    const auto other = others_.find(call.args()[i].node());
    const graph::TensorMeta* const expected = placeholders[i]->meta().tensor();
    if (other == others_.end() || expected == nullptr) continue;
    // Takes only the layout from `other->second`, which describes the tensor as a piece returned it. A piece in between
    // may have made the tensor require grad.
    graph::TensorMeta meta = *expected;
    meta.strides = other->second.strides;
    meta.storage_offset = other->second.storage_offset;
    meta.storage_nbytes = other->second.storage_nbytes;
    others.emplace(i, std::move(meta));
  }
  return others;
}

void PieceCompiler::note_outputs(const std::vector<const Node*>& values, const graph::GraphModule& piece,
                                 const std::vector<graph::ValueMeta>& stated, const std::vector<OutputRole>& roles) {
  const std::vector<graph::ValueMeta> recorded = recorded_outputs(piece);
  for (std::size_t i = 0; i < recorded.size(); ++i) {
    const graph::TensorMeta *is = recorded[i].tensor(), *says = stated[i].tensor();
    if (values[i] == nullptr || is == nullptr || says == nullptr || roles[i].is_restored) continue;
    if (same_layout(*is, *says)) continue;
    graph::TensorMeta other = *is;  // the back end states only the layout
    other.strides = says->strides;
    other.storage_offset = says->storage_offset;
    other.storage_nbytes.reset();
    others_.emplace(values[i], std::move(other));
  }
}

}  // namespace rehearse::compiler
