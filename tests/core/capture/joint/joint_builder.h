// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <utility>

#include <rehearse_internal/capture/joint_graph.h>

namespace rehearse_test {

// Builds joint graphs by hand, node by node.
class JointBuilder {
 public:
  using Node = rehearse::graph::Node;

  Node& input(const std::string& name) {
    ++joint.inputs;
    return tensor(graph().placeholder(name));
  }
  Node& size_input(const std::string& name) {
    ++joint.inputs;
    return number(graph().placeholder(name));
  }
  // Adds the gradient of a result, in row-major layout. `value`: the index of the result in the list that finish()
  // gets.
  Node& tangent(std::size_t value) {
    joint.tangents.push_back({value, {.dim_order = {0, 1}}});
    return tensor(graph().placeholder("tangent_" + std::to_string(value)));
  }
  Node& call(const std::string& op, rehearse::graph::List args) {
    return tensor(graph().call_function("torch.ops.aten." + op, std::move(args)));
  }
  Node& call_number(const std::string& function, rehearse::graph::List args) {
    return number(graph().call_function(function, std::move(args)));
  }
  void begin_backward(Node& first) { joint.backward_begin = &first; }

  rehearse::capture::JointGraph finish(rehearse::graph::List values, const rehearse::graph::List& gradients = {}) {
    joint.values = values.size();
    for (std::size_t i = 0; i < values.size(); ++i) {
      joint.outputs.push_back({rehearse::capture::GraphOutput::Kind::Value, i});
    }
    values.insert(values.end(), gradients.begin(), gradients.end());
    graph().output(std::move(values));
    return joint;
  }

  rehearse::graph::Graph& graph() { return joint.module->graph(); }

  rehearse::capture::JointGraph joint{.module = std::make_shared<rehearse::graph::GraphModule>("Joint")};

 private:
  static Node& tensor(Node& node) {
    node.meta().set_value(rehearse::graph::TensorMeta{.sizes = {2, 3}, .strides = {3, 1}});
    return node;
  }
  static Node& number(Node& node) {
    node.meta().set_value(rehearse::graph::SymScalarMeta{.expression = {"s0"}});
    return node;
  }
};

// relu(x @ t(w)) and its gradients, with x and w as inputs.
inline rehearse::capture::JointGraph linear_relu() {
  JointBuilder b;
  auto& x = b.input("x");
  auto& w = b.input("w");
  auto& tangent = b.tangent(0);
  auto& t = b.call("t.default", {w});
  auto& mm = b.call("mm.default", {x, t});
  auto& relu = b.call("relu.default", {mm});
  auto& through = b.call("threshold_backward.default", {tangent, relu, 0});
  b.begin_backward(through);
  auto& back = b.call("t.default", {t});
  auto& dx = b.call("mm.default", {through, back});
  auto& turned = b.call("t.default", {through});
  auto& dw = b.call("mm.default", {turned, x});
  return b.finish({relu}, {dx, dw});
}

}  // namespace rehearse_test
