// SPDX-License-Identifier: BSD-3-Clause
#include "compile/partitions/piece_compiler.h"

#include <algorithm>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include <rehearse_internal/graph/results.h>

#include "compile/partitions/eager_backend.h"
#include "compile/partitions/layout_use.h"
#include "compile/partitions/leaf_cuts.h"

namespace rehearse::compiler {
namespace {

using graph::Node;
using graph::Op;

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
  BackendInput input{module, example_inputs(*module, shapes_, &memory, others), shapes_, name};
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
