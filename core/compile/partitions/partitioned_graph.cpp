// SPDX-License-Identifier: BSD-3-Clause
#include "compile/partitions/partitioned_graph.h"

#include <utility>

#include <fmt/format.h>

#include <rehearse_internal/graph/results.h>

#include "graph/run/call/to_ivalue.h"

namespace rehearse::compiler {
namespace {

using graph::GraphError;
using graph::Node;
using graph::Op;

bool is_item(const Node& node) { return node.op() == Op::CallFunction && node.target() == "_operator.getitem"; }

std::size_t outputs_of_piece(const graph::GraphModule& part, const Node& call) {
  const Node* const output = part.graph().output_node();
  if (!output || output->args().size() != 1) throw GraphError(call.name(), "target", "its graph has no output");
  return graph::results_of(part.graph()).size();
}

}  // namespace

PartitionedGraph::PartitionedGraph(const graph::GraphModule& module, std::map<std::string, CompiledPiece> pieces) {
  for (const Node& node : module.graph()) {
    if (node.op() == Op::Placeholder) {
      slot_of_[&node] = inputs_++;
      attributes_.emplace_back();
    } else if (node.op() == Op::GetAttr) {
      const graph::Attribute* attribute = module.find_attribute(node.target());
      slot_of_[&node] = attributes_.size();
      attributes_.emplace_back(attribute ? c10::IValue(attribute->tensor) : c10::IValue());
    } else if (node.op() == Op::CallModule) {
      const auto part = module.find_submodule(node.target());
      if (!part) throw GraphError(node.name(), "target", "there is no submodule '" + node.target() + "'");
      calls_.push_back({.first_output = attributes_.size(), .outputs = outputs_of_piece(*part, node)});
      add_call(node, pieces);
    } else if (is_item(node)) {
      const auto index = node.args().at(1).as<std::int64_t>();
      slot_of_[&node] = slot_of_.at(node.args().at(0).node()) + static_cast<std::size_t>(index);
    } else if (node.op() != Op::Output) {
      throw GraphError(node.name(), "op", "stands between the partitions of a split graph");
    }
  }
  for (const graph::Argument& result : graph::results_of(module.graph())) {
    results_.push_back(operand(result, *module.graph().output_node()));
  }
  mark_last_uses();
  slot_of_.clear();
}

void PartitionedGraph::add_call(const Node& node, std::map<std::string, CompiledPiece>& pieces) {
  Call& call = calls_.back();
  const auto found = pieces.find(node.target());
  if (found == pieces.end()) throw GraphError(node.name(), "target", "'" + node.target() + "' was not compiled");
  call.piece = found->second;
  for (const graph::Argument& argument : node.args()) call.inputs.push_back(operand(argument, node));
  slot_of_[&node] = call.first_output;
  attributes_.resize(call.first_output + call.outputs);
}

PartitionedGraph::Operand PartitionedGraph::operand(const graph::Argument& argument, const Node& user) const {
  if (const Node* node = argument.node()) return {.slot = slot_of_.at(node)};
  const auto refuse = [](const Node& node) -> const c10::IValue& {
    throw GraphError(node.name(), "", "stands in a list of a split graph's own");
  };
  return {.constant = graph::to_ivalue(argument, refuse, user, "args")};
}

void PartitionedGraph::mark_last_uses() {
  std::vector<bool> used(attributes_.size(), false);
  const auto visit = [&](std::vector<Operand>& operands) {
    for (auto each = operands.rbegin(); each != operands.rend(); ++each) {
      if (each->slot == kConstant) continue;
      each->last_use = !used[each->slot];
      used[each->slot] = true;
    }
  };
  visit(results_);
  for (auto call = calls_.rbegin(); call != calls_.rend(); ++call) visit(call->inputs);
}

c10::IValue PartitionedGraph::take(const Operand& operand, std::vector<c10::IValue>& slots) {
  if (operand.slot == kConstant) return operand.constant;
  return operand.last_use ? std::move(slots[operand.slot]) : slots[operand.slot];
}

std::vector<c10::IValue> PartitionedGraph::run(std::vector<c10::IValue> inputs) const {
  if (inputs.size() != inputs_) {
    throw GraphError("", "inputs", fmt::format("there are {} for {} placeholders", inputs.size(), inputs_));
  }
  std::vector<c10::IValue> slots = attributes_;
  for (std::size_t i = 0; i < inputs_; ++i) slots[i] = std::move(inputs[i]);
  for (const Call& call : calls_) {
    std::vector<c10::IValue> operands;
    operands.reserve(call.inputs.size());
    for (const Operand& each : call.inputs) operands.push_back(take(each, slots));
    for (const std::size_t copied : call.piece.border.fit(operands)) {
      const Operand& operand = call.inputs[copied];
      if (operand.slot != kConstant && !operand.last_use) slots[operand.slot] = operands[copied];
    }
    std::vector<c10::IValue> values = call.piece.run(std::move(operands));
    TORCH_INTERNAL_ASSERT(values.size() == call.outputs, "a partition gave ", values.size(), " values");
    for (std::size_t i = 0; i < values.size(); ++i) slots[call.first_output + i] = std::move(values[i]);
  }
  std::vector<c10::IValue> results;
  results.reserve(results_.size());
  for (const Operand& each : results_) results.push_back(take(each, slots));
  return results;
}

}  // namespace rehearse::compiler
