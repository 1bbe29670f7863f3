// SPDX-License-Identifier: BSD-3-Clause
#include "capture/trace/recording/fold_linear.h"

#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace rehearse::capture {
namespace {

using graph::Argument;
using graph::Graph;
using graph::GraphModule;
using graph::Node;

struct Linear {
  std::vector<Node*> nodes;  // in order; the last one computes the result
  Node* input;
  Node* weight;
  Node* bias;  // null: none
};

Node* argument(const Node& node, std::size_t index) {
  return index < node.args().size() ? node.args()[index].node() : nullptr;
}

// True for a call with exactly `count` arguments: alpha and beta are left out, so they are 1.
bool is_call(const Node* node, std::string_view target, std::size_t count) {
  return node != nullptr && node->target() == target && node->args().size() == count && node->kwargs().empty();
}

bool is_parameter(const Node* node, std::size_t dimensions) {
  const graph::TensorMeta* meta = node != nullptr ? node->meta().tensor() : nullptr;
  return meta != nullptr && node->op() == graph::Op::Placeholder && meta->is_parameter &&
         meta->sizes.size() == dimensions;
}

bool is_used_by_next_alone(const Node& node) { return node.users().size() == 1 && node.users().front() == node.next(); }

// The linear layer that starts with `transpose`, which is t() of its weight.
std::optional<Linear> linear_at(Node& transpose) {
  if (!is_call(&transpose, "torch.ops.aten.t.default", 1) || !is_parameter(argument(transpose, 0), 2)) return {};
  Node* weight = argument(transpose, 0);
  if (!is_used_by_next_alone(transpose)) return {};
  Node* product = transpose.next();
  if (is_call(product, "torch.ops.aten.addmm.default", 3) && argument(*product, 2) == &transpose) {
    Node* bias = argument(*product, 0);
    if (!is_parameter(bias, 1) || argument(*product, 1) == nullptr) return {};
    return Linear{{&transpose, product}, argument(*product, 1), weight, bias};
  }
  if (!is_call(product, "torch.ops.aten.matmul.default", 2) || argument(*product, 1) != &transpose) return {};
  Linear linear{{&transpose, product}, argument(*product, 0), weight, nullptr};
  if (linear.input == nullptr || linear.input == &transpose) return {};
  Node* sum = product->next();
  if (is_call(sum, "torch.ops.aten.add_.Tensor", 2) && argument(*sum, 0) == product &&
      is_parameter(argument(*sum, 1), 1) && is_used_by_next_alone(*product)) {
    linear.nodes.push_back(sum);
    linear.bias = argument(*sum, 1);
  }
  return linear;
}

std::shared_ptr<GraphModule> body_of(const Linear& linear) {
  auto body = std::make_shared<GraphModule>("Linear");
  std::unordered_map<const Node*, Node*> copies;
  const auto add_operand = [&](Node* operand, const char* name) {
    if (operand == nullptr || copies.contains(operand)) return;
    Node& placeholder = body->graph().placeholder(name);
    placeholder.meta() = operand->meta();
    placeholder.meta().unbacked_bindings.clear();
    copies.emplace(operand, &placeholder);
  };
  add_operand(linear.input, "input");
  add_operand(linear.weight, "weight");
  add_operand(linear.bias, "bias");
  for (const Node* node : linear.nodes) {
    copies[node] = &body->graph().copy_node(*node, [&](Node& input) { return Argument(*copies.at(&input)); });
  }
  body->graph().output(*copies.at(linear.nodes.back()));
  return body;
}

void fold(GraphModule& module, const Linear& linear, std::size_t number) {
  const std::string name = "linear_" + std::to_string(number);
  Graph& graph = module.graph();
  Node& result = *linear.nodes.back();
  module.set_submodule(name + "_body", body_of(linear));
  const Graph::InsertionPoint here = graph.inserting_before(*linear.nodes.front());
  Node& body = graph.get_attr(name + "_body");
  graph::List arguments = {body, name, *linear.input};
  // If the weight itself is the input, the body has one operand for both.
  if (linear.weight != linear.input) arguments.push_back(*linear.weight);
  if (linear.bias != nullptr && linear.bias != linear.input) arguments.push_back(*linear.bias);
  Node& call = graph.call_function("torch.ops.higher_order.invoke_subgraph", std::move(arguments), {}, "linear");
  call.meta() = result.meta();
  // The first node has the weight among its arguments, so its origin names the module.
  call.meta().origin = linear.nodes.front()->meta().origin;
  result.replace_all_uses_with(call);
  for (auto node = linear.nodes.rbegin(); node != linear.nodes.rend(); ++node) graph.erase_node(**node);
}

}  // namespace

void fold_linear(GraphModule& module) {
  std::vector<Node*> transposes;
  for (Node& node : module.graph()) {
    if (linear_at(node)) transposes.push_back(&node);
  }
  std::size_t number = 0;
  for (Node* transpose : transposes) fold(module, *linear_at(*transpose), number++);
}

}  // namespace rehearse::capture
