// SPDX-License-Identifier: BSD-3-Clause
#include "compile/partitions/memory_classes.h"

#include <algorithm>
#include <map>
#include <set>

#include <rehearse_internal/graph/operators.h>
#include <rehearse_internal/operators/storage_of.h>

namespace rehearse::compiler {
namespace {

using graph::Node;
using graph::Op;

bool has_pieces(const graph::GraphModule& module) {
  return std::ranges::any_of(module.graph(), [](const Node& node) { return node.op() == Op::CallModule; });
}

}  // namespace

ValueLives::ValueLives(const graph::GraphModule& split, const MemoryClasses& memory) : memory_(memory) {
  const bool is_split = has_pieces(split);
  std::unordered_map<const Node*, std::size_t> piece_of;
  std::size_t pieces = 0;
  const auto use = [&](const Node& node, std::size_t at) {
    for (const Node* input : node.input_nodes()) {
      const auto life = index_.find(input);
      if (life != index_.end()) lives_[life->second].last_used = std::max(lives_[life->second].last_used, at);
    }
  };
  for (const Node& node : split.graph()) {
    if (node.op() == Op::Placeholder || node.op() == Op::GetAttr) {
      add(node, 0, true);
    } else if (node.op() == Op::Output) {
      use(node, kAlways);
    } else if (is_split && node.op() == Op::CallModule) {
      use(node, pieces);
      piece_of[&node] = pieces;
      add(node, pieces++, false);
    } else {
      const Node* of = is_split && !node.args().empty() ? node.args()[0].node() : nullptr;
      const auto piece = piece_of.find(of);
      add(node, piece != piece_of.end() ? piece->second : 0, false);
    }
  }
}

void ValueLives::add(const Node& value, std::size_t made, bool is_input) {
  index_[&value] = lives_.size();
  by_class_[memory_.of(value)].push_back(lives_.size());
  lives_.push_back({&value, made, is_input ? kAlways : made, is_input});
}

template <class Condition>
bool ValueLives::any_other(const Node& value, Condition&& condition) const {
  const auto others = by_class_.find(memory_.of(value));
  if (others == by_class_.end()) return false;
  return std::ranges::any_of(others->second,
                             [&](std::size_t i) { return lives_[i].value != &value && condition(lives_[i]); });
}

bool ValueLives::shares_when_made(const Node& value) const {
  const Life& own = life_of(value);
  return own.is_input || any_other(value, [&](const Life& other) {
           return other.is_input || (other.made <= own.made && other.last_used > own.made);
         });
}

bool ValueLives::shares_at(const Node& value, std::size_t piece) const {
  return any_other(value, [&](const Life& other) {
    return other.is_input || (other.made < piece && other.last_used >= piece && other.last_used > other.made);
  });
}

bool ValueLives::leaves_or_is_shared(const Node& value) const {
  const Life& own = life_of(value);
  return own.last_used == kAlways || any_other(value, [&](const Life& other) { return other.made > own.made; });
}

namespace {

using graph::Node;
using graph::Op;

bool has_alias(const c10::Argument& argument) { return argument.alias_info() != nullptr; }

}  // namespace

InputMemory memory_of(const std::vector<c10::IValue>& inputs) {
  InputMemory memory;
  for (const c10::IValue& input : inputs) {
    memory.push_back(input.isTensor() ? operators::storage_of(input.toTensor()) : nullptr);
  }
  return memory;
}

MemoryClasses::MemoryClasses(const graph::GraphModule& split, const InputMemory& inputs) {
  std::map<const void*, std::size_t> element_of_memory;
  const auto placeholders = split.graph().placeholders();
  for (std::size_t i = 0; i < std::min(placeholders.size(), inputs.size()); ++i) {
    if (inputs[i] == nullptr) continue;
    const auto [known, is_new] = element_of_memory.emplace(inputs[i], parents_.size());
    if (is_new) new_element();
    elements_.emplace(placeholders[i], known->second);
  }
  visit(split);
}

bool MemoryClasses::writes_to_inputs(const graph::GraphModule& module) const {
  std::set<std::size_t> of_inputs;
  for (const Node* input : module.graph().placeholders()) of_inputs.insert(of(*input));
  const auto writes = [&](const Node& node) {
    const auto op = node.op() == Op::CallFunction ? graph::find_operator(node.target()) : std::nullopt;
    if (!op || !op->schema().is_mutable()) return false;
    const auto& written = node.input_nodes();
    return std::ranges::any_of(written, [&](const Node* each) { return of_inputs.contains(of(*each)); });
  };
  return std::ranges::any_of(module.graph(), writes);
}

std::size_t MemoryClasses::new_element() {
  parents_.push_back(parents_.size());
  return parents_.back();
}

std::size_t MemoryClasses::root(std::size_t element) const {
  while (parents_[element] != element) element = parents_[element];
  return element;
}

// Merges the classes of all nodes in the argument. Returns the merged class; a new one if there are no nodes.
std::size_t MemoryClasses::joined(const graph::Argument& argument) {
  std::size_t joint = new_element();
  for_each_node(argument, [&](const Node& node) { parents_[root(elements_.at(&node))] = joint; });
  return joint;
}

void MemoryClasses::visit(const graph::GraphModule& module) {
  for (const Node& node : module.graph()) {
    if (!elements_.contains(&node)) elements_.emplace(&node, element_of(node, module));
  }
}

std::size_t MemoryClasses::element_of(const Node& node, const graph::GraphModule& module) {
  if (node.op() == Op::CallFunction) return element_of_call(node);
  const auto piece = node.op() == Op::CallModule ? module.find_submodule(node.target()) : nullptr;
  return piece != nullptr && !piece->is_leaf() ? element_of_piece(node, *piece) : new_element();
}

std::size_t MemoryClasses::element_of_call(const Node& node) {
  if (node.target() == "_operator.getitem") return element_of_item(node);
  const auto op = graph::find_operator(node.target());
  if (!op) return new_element();
  const auto& returns = op->schema().returns();
  if (std::ranges::none_of(returns, has_alias)) return new_element();
  graph::List aliased;
  const auto& formals = op->schema().arguments();
  for (std::size_t i = 0; i < formals.size(); ++i) {
    const graph::Argument* const given = has_alias(formals[i]) ? graph::argument_of(node, op->schema(), i) : nullptr;
    if (given != nullptr) aliased.push_back(*given);
  }
  return joined(aliased);
}

std::size_t MemoryClasses::element_of_item(const Node& node) {
  const auto items = items_.find(node.args().at(0).node());
  const auto* index = node.args().at(1).get_if<std::int64_t>();
  if (items == items_.end() || index == nullptr) return joined(node.args()[0]);
  return items->second.at(static_cast<std::size_t>(*index));
}

std::size_t MemoryClasses::element_of_piece(const Node& call, const graph::GraphModule& piece) {
  const auto inputs = piece.graph().placeholders();
  for (std::size_t i = 0; i < std::min(inputs.size(), call.args().size()); ++i) {
    elements_.emplace(inputs[i], joined(call.args()[i]));
  }
  visit(piece);
  const graph::Argument& result = piece.graph().output_node()->args().at(0);
  if (const auto* items = result.get_if<graph::List>()) {
    for (const graph::Argument& item : *items) items_[&call].push_back(joined(item));
    return new_element();
  }
  return joined(result);
}

}  // namespace rehearse::compiler
