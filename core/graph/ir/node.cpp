// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/graph/node.h>

#include <algorithm>
#include <array>
#include <functional>
#include <unordered_set>
#include <utility>

#include <rehearse/graph/errors.h>

#include "graph/ir/repeated_name.h"

namespace rehearse::graph {
namespace {

constexpr std::array<std::string_view, 6> kOpNames = {"placeholder", "get_attr",    "call_function",
                                                      "call_method", "call_module", "output"};

void check_unique(const std::string& node, const std::string& field, const Dict& dict) {
  if (const auto name = repeated_name(dict)) throw GraphError(node, field + "." + *name, "the name is given twice");
}

// Limits the depth, because everything that walks over arguments is recursive.
void check_value(const std::string& node, const std::string& field, const Argument& value, int depth = 0) {
  const auto check_items = [&](const auto& items, auto&& item_of) {
    if (depth == kMaxNesting) {
      throw GraphError(node, field, "is nested deeper than " + std::to_string(kMaxNesting));
    }
    for (const auto& item : items) check_value(node, field, item_of(item), depth + 1);
  };
  if (const List* list = value.get_if<List>()) {
    check_items(*list, std::identity{});
  } else if (const Slice* slice = value.get_if<Slice>()) {
    check_items(slice->bounds(), std::identity{});
  } else if (const Dict* dict = value.get_if<Dict>()) {
    check_unique(node, field, *dict);
    check_items(*dict, [](const auto& entry) -> const Argument& { return entry.second; });
  }
}

}  // namespace

std::string_view to_string(Op op) noexcept { return kOpNames[static_cast<std::size_t>(op)]; }

std::optional<Op> op_from_string(std::string_view text) noexcept {
  for (std::size_t i = 0; i < kOpNames.size(); ++i) {
    if (kOpNames[i] == text) return static_cast<Op>(i);
  }
  return std::nullopt;
}

Node::Node(Key, Graph& graph, Op op, std::string name, std::string target)
    : graph_(&graph), op_(op), name_(std::move(name)), target_(std::move(target)) {}

const Argument* Node::kwarg(std::string_view name) const noexcept {
  for (const auto& [key, value] : kwargs_) {
    if (key == name) return &value;
  }
  return nullptr;
}

void Node::set_args(List args) {
  for (std::size_t i = 0; i < args.size(); ++i) check_value(name_, "args[" + std::to_string(i) + "]", args[i]);
  std::swap(args_, args);
  try {
    update_inputs();
  } catch (...) {
    std::swap(args_, args);
    throw;
  }
}

void Node::set_kwargs(Dict kwargs) {
  check_unique(name_, "kwargs", kwargs);
  for (const auto& [key, value] : kwargs) check_value(name_, "kwargs." + key, value);
  std::swap(kwargs_, kwargs);
  try {
    update_inputs();
  } catch (...) {
    std::swap(kwargs_, kwargs);
    throw;
  }
}

// Reads the inputs from the arguments. Changes nothing if one of them belongs to another graph.
void Node::update_inputs() {
  std::vector<Node*> inputs;
  std::unordered_set<Node*> seen;  // only used for long lists, because most nodes have few inputs
  auto add = [&](Node& input) {
    if (input.graph_ != graph_) {
      throw GraphError(name_, "args", "'" + input.name_ + "' is a node of another graph");
    }
    const bool is_new = inputs.size() < 16 ? std::ranges::find(inputs, &input) == inputs.end() : !seen.contains(&input);
    if (!is_new) return;
    inputs.push_back(&input);
    if (inputs.size() == 16) seen.insert(inputs.begin(), inputs.end());
    if (inputs.size() > 16) seen.insert(&input);
  };
  for (const Argument& argument : args_) for_each_node(argument, add);
  for (const auto& [key, argument] : kwargs_) for_each_node(argument, add);
  for (Node* input : inputs_) input->drop_user(*this);
  inputs_ = std::move(inputs);
  for (Node* input : inputs_) input->users_.push_back(this);
}

void Node::drop_user(const Node& user) {
  const auto at = std::find(users_.rbegin(), users_.rend(), &user);
  if (at != users_.rend()) users_.erase(std::next(at).base());
}

void Node::replace_input_with(Node& old, Node& replacement) {
  auto put = [&](Node& node) -> Argument { return &node == &old ? replacement : node; };
  List args = map_nodes(Argument(args_), put).as<List>();
  Dict kwargs = map_nodes(Argument(kwargs_), put).as<Dict>();
  std::swap(args_, args);
  std::swap(kwargs_, kwargs);
  try {
    update_inputs();
  } catch (...) {
    std::swap(args_, args);
    std::swap(kwargs_, kwargs);
    throw;
  }
}

std::vector<Node*> Node::replace_all_uses_with(Node& replacement) {
  if (&replacement == this) return {};
  if (replacement.graph_ != graph_) {
    throw GraphError(name_, "users", "'" + replacement.name_ + "' is a node of another graph");
  }
  // Takes the whole list of users first. Otherwise each user would search the list to remove itself.
  std::vector<Node*> changed = std::exchange(users_, {});
  const auto self_use = std::ranges::find(changed, &replacement);
  if (self_use != changed.end()) {
    changed.erase(self_use);
    users_.push_back(&replacement);
  }
  for (Node* user : changed) user->replace_input_with(*this, replacement);
  return changed;
}

}  // namespace rehearse::graph
