// SPDX-License-Identifier: BSD-3-Clause
#include "capture/joint/tangent_reach.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <rehearse_internal/graph/operators.h>

#include "graph/ir/targets.h"

namespace rehearse::capture {
namespace {

using graph::Node;

// The effect of an operator on the memory of its arguments.
struct Access {
  std::vector<const Node*> written;
  const Node* aliased = nullptr;  // the argument that the result aliases
};

Access access_of(const Node& node) {
  Access access;
  if (node.target() == graph::kGetItem) {
    access.aliased = node.args().at(0).node();
    return access;
  }
  const auto op = graph::find_operator(node.target());
  if (!op) return access;
  const auto& returns = op->schema().returns();
  const bool gives_alias =
      std::any_of(returns.begin(), returns.end(), [](const auto& result) { return result.alias_info() != nullptr; });
  const auto& formals = op->schema().arguments();
  for (std::size_t i = 0; i < formals.size(); ++i) {
    const c10::AliasInfo* alias = formals[i].alias_info();
    const graph::Argument* argument = alias ? graph::argument_of(node, op->schema(), i) : nullptr;
    if (!argument) continue;
    graph::for_each_node(*argument, [&](const Node& each) {
      if (alias->isWrite()) access.written.push_back(&each);
      if (gives_alias && access.aliased == nullptr) access.aliased = &each;
    });
  }
  return access;
}

using Reached = std::unordered_set<const torch::autograd::Node*>;

Reached reached_from(const at::Tensor& root) {
  Reached reached;
  std::vector<torch::autograd::Node*> open = {torch::autograd::impl::gradient_edge(root).function.get()};
  while (!open.empty()) {
    torch::autograd::Node* const step = open.back();
    open.pop_back();
    if (step == nullptr || !reached.insert(step).second) continue;
    for (const torch::autograd::Edge& edge : step->next_edges()) open.push_back(edge.function.get());
  }
  return reached;
}

}  // namespace

TangentReach::TangentReach(const std::vector<const Node*>& tangents) {
  for (std::size_t i = 0; i < tangents.size(); ++i) reached_[memory_of(*tangents[i])] = {i};
}

std::size_t TangentReach::memory_of(const Node& node) {
  const auto [found, is_new] = memories_.emplace(&node, reached_.size());
  if (is_new) reached_.emplace_back();
  return found->second;
}

void TangentReach::pass(const Node& node) {
  std::set<std::size_t> mine;
  for (const Node* input : node.input_nodes()) {
    const std::set<std::size_t>& of_input = reached_[memory_of(*input)];
    mine.insert(of_input.begin(), of_input.end());
  }
  const Access access = access_of(node);
  for (const Node* written : access.written) reached_[memory_of(*written)].insert(mine.begin(), mine.end());
  if (access.aliased != nullptr) memories_.insert_or_assign(&node, memory_of(*access.aliased));
  reached_[memory_of(node)].insert(mine.begin(), mine.end());
}

std::vector<std::size_t> TangentReach::of(const Node& node) const {
  const auto found = memories_.find(&node);
  if (found == memories_.end()) return {};
  const std::set<std::size_t>& reached = reached_[found->second];
  return {reached.begin(), reached.end()};
}

std::vector<std::vector<std::size_t>> leading_tangents(const std::vector<at::Tensor>& roots,
                                                       const JointInputs& inputs) {
  std::vector<std::vector<std::size_t>> leading(inputs.values().size());
  for (std::size_t tangent = 0; tangent < roots.size(); ++tangent) {
    const Reached reached = reached_from(roots[tangent]);
    for (std::size_t i = 0; i < inputs.positions().size(); ++i) {
      const auto end = torch::autograd::impl::gradient_edge(inputs.differentiable()[i]).function;
      if (reached.contains(end.get())) leading[inputs.positions()[i]].push_back(tangent);
    }
  }
  return leading;
}

}  // namespace rehearse::capture
