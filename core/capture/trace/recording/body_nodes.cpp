// SPDX-License-Identifier: BSD-3-Clause
#include "capture/trace/recording/body_nodes.h"

#include <functional>
#include <string_view>

#include <ATen/core/dispatch/Dispatcher.h>

#include <rehearse_internal/graph/operators.h>

#include "graph/ir/targets.h"
#include "graph/run/call/communication.h"

namespace rehearse::capture {
namespace {

using graph::Node;
using graph::Op;

std::vector<Node*> nodes_in(const graph::Argument& argument) {
  std::vector<Node*> nodes;
  for_each_node(argument, [&](Node& node) { nodes.push_back(&node); });
  return nodes;
}

bool acts_on_others(const Node& node) { return graph::communicates(node) || node.target().starts_with("rehearse."); }

bool is_scalar(const Node& node) { return node.meta().value && node.meta().value->scalar() != nullptr; }

// Null if the operator has no argument of this name, or the call leaves it at its default.
const graph::Argument* argument_of(const Node& node, const c10::FunctionSchema& schema, std::string_view name) {
  const auto index = schema.argumentIndexWithName(name);
  return index ? graph::argument_of(node, schema, static_cast<std::size_t>(*index)) : nullptr;
}

// Batch norm in training updates its running statistics, although its schema does not say so.
bool updates_statistics(const Node& node, const c10::FunctionSchema& schema) {
  const std::string& name = schema.name();
  if (name.find("batch_norm") == std::string::npos && name.find("instance_norm") == std::string::npos) return false;
  const graph::Argument* const statistics = argument_of(node, schema, "running_mean");
  if (statistics == nullptr || statistics->node() == nullptr) return false;
  for (const std::string_view flag : {"training", "train", "use_input_stats"}) {
    const graph::Argument* const trains = argument_of(node, schema, flag);
    const bool* const value = trains != nullptr ? trains->get_if<bool>() : nullptr;
    if (value != nullptr && !*value) return false;
  }
  return true;
}

// Visits each argument that the operator writes to, or whose memory a result shares. Visits none if the node calls no
// operator.
template <class Visit>
void for_each_aliased(const Node& node, const Visit& visit) {
  const auto op = node.op() == Op::CallFunction ? graph::find_operator(node.target()) : std::nullopt;
  if (!op) return;
  const auto& formals = op->schema().arguments();
  for (std::size_t i = 0; i < formals.size(); ++i) {
    const c10::AliasInfo* const alias = formals[i].alias_info();
    const graph::Argument* const given = alias != nullptr ? graph::argument_of(node, op->schema(), i) : nullptr;
    if (given != nullptr) visit(*given, alias->isWrite());
  }
}

}  // namespace

BodyNodes::BodyNodes(graph::GraphModule& module, Node& begin, Node& end) : module_(module), begin_(begin), end_(end) {
  for (Node* node = begin.next(); node != &end; node = node->next()) {
    nodes_.push_back(node);
    known_.insert(node);
  }
}

const std::string& BodyNodes::operation() const { return *begin_.args()[1].get_if<std::string>(); }

std::vector<Node*> BodyNodes::inputs() const { return nodes_in(begin_.args()[2]); }

std::vector<Node*> BodyNodes::results() const {
  std::vector<Node*> results;
  for (Node* node : nodes_in(end_.args()[1])) {
    if (has(*node) && std::find(results.begin(), results.end(), node) == results.end()) results.push_back(node);
  }
  return results;
}

bool BodyNodes::uses_only_outside(const Node& node) const {
  return std::none_of(node.input_nodes().begin(), node.input_nodes().end(),
                      [this](const Node* input) { return has(*input); });
}

void BodyNodes::hoist_numbers() {
  std::erase_if(nodes_, [this](Node* node) {
    if (!is_scalar(*node) || !node->meta().unbacked_bindings.empty() || !uses_only_outside(*node)) return false;
    module_.graph().move_before(*node, begin_);
    known_.erase(node);
    return true;
  });
}

void BodyNodes::erase() {
  module_.graph().erase_node(end_);
  for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node) module_.graph().erase_node(**node);
  nodes_.clear();
  known_.clear();
}

std::optional<std::string> BodyNodes::cannot_be_body() const {
  for (const Node* node : nodes_) {
    if (acts_on_others(*node)) return "it communicates (" + node->target() + ")";
    if (!node->meta().unbacked_bindings.empty()) return "it asks for a size or number that only data tells";
    if (node->op() != Op::CallFunction && node->op() != Op::GetAttr) return "it calls the method " + node->target();
    if (node->target() == graph::kExitAutocast && uses_only_outside(*node)) return "it ends an autocast of outside";
  }
  if (auto why = write_to_outside()) return why;
  return use_outside();
}

// The nodes of the body whose memory may be shared with a value from outside.
std::unordered_set<const Node*> BodyNodes::sharing_outside() const {
  std::unordered_set<const Node*> sharing;
  for (const Node* node : nodes_) {
    const auto note = [&](const graph::Argument& argument, bool) {
      for (const Node* each : nodes_in(argument)) {
        if (!has(*each) || sharing.contains(each)) sharing.insert(node);
      }
    };
    for_each_aliased(*node, note);
    if (node->target() == graph::kGetItem) note(node->args()[0], false);
  }
  return sharing;
}

std::optional<std::string> BodyNodes::write_to_outside() const {
  const auto sharing = sharing_outside();
  std::optional<std::string> why;
  for (const Node* node : nodes_) {
    const auto op = node->op() == Op::CallFunction ? graph::find_operator(node->target()) : std::nullopt;
    if (op && updates_statistics(*node, op->schema())) return "it updates running statistics (" + node->target() + ")";
    for_each_aliased(*node, [&](const graph::Argument& argument, bool writes) {
      for (const Node* each : nodes_in(argument)) {
        if (writes && (!has(*each) || sharing.contains(each))) {
          why = "it writes to a tensor from outside (" + node->target() + ")";
        }
      }
    });
    if (why) return why;
  }
  for (const Node* result : results()) {
    if (sharing.contains(result)) return "it returns the memory of a tensor from outside";
  }
  return std::nullopt;
}

std::optional<std::string> BodyNodes::use_outside() const {
  const std::vector<Node*> results = this->results();
  for (const Node* node : nodes_) {
    if (std::find(results.begin(), results.end(), node) != results.end()) {
      if (node->meta().tensor() == nullptr) return "it returns something that is no tensor";
      continue;
    }
    for (const Node* user : node->users()) {
      if (!has(*user)) return "something that it makes is used outside and is no result (" + node->target() + ")";
    }
  }
  return std::nullopt;
}

}  // namespace rehearse::capture
