// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "graph/run/runnable_graph.h"

namespace rehearse::graph {

// The common parts of higher-order operators: bodies, which are submodules of the module, and operands.
class HigherOrder {
 public:
  HigherOrder(const Node& node, const GraphModule& module) : node_(node), module_(module) {}

  const Node& node() const { return node_; }
  const GraphModule& module() const { return module_; }

  std::shared_ptr<const RunnableGraph> body(std::size_t index, Bodies& bodies) const {
    const Node* attribute = argument(index).node();
    const auto found =
        attribute != nullptr && attribute->op() == Op::GetAttr ? module_.find_submodule(attribute->target()) : nullptr;
    if (found == nullptr) throw GraphError(node_.name(), field(index), "must be an attribute that is a submodule");
    return bodies.of(found);
  }

  const Argument& argument(std::size_t index) const {
    if (index >= node_.args().size()) throw GraphError(node_.name(), field(index), "is missing");
    return node_.args()[index];
  }

  c10::IValue value(std::size_t index, const ValueOf& value_of) const {
    return to_ivalue(argument(index), value_of, node_, field(index));
  }

  // The items of the list at `index`; none if the argument is missing or None.
  std::vector<c10::IValue> items(std::size_t index, const ValueOf& value_of) const {
    if (index >= node_.args().size()) return {};
    const c10::IValue list = value(index, value_of);
    if (list.isNone()) return {};
    if (!list.isTuple()) throw GraphError(node_.name(), field(index), "must be a list of operands");
    return list.toTupleRef().elements().vec();
  }

  std::vector<c10::IValue> rest(std::size_t first, const ValueOf& value_of) const {
    std::vector<c10::IValue> operands;
    for (std::size_t i = first; i < node_.args().size(); ++i) operands.push_back(value(i, value_of));
    return operands;
  }

  bool truth(const c10::IValue& value, const std::string& what) const {
    if (value.isBool()) return value.toBool();
    if (value.isTensor() && value.toTensor().numel() == 1) return value.toTensor().item().toBool();
    throw GraphError(node_.name(), what, "must be a bool or a tensor of one element, and is " + value.tagKind());
  }

 private:
  static std::string field(std::size_t index) { return "args[" + std::to_string(index) + "]"; }

  const Node& node_;
  const GraphModule& module_;
};

using Run = std::function<c10::IValue(const ValueOf&)>;

// tag_activation_checkpoint(body, operands..., inputs=n) runs the body again for its backward. The first n operands are
// the checkpoint's inputs, the others are further values that its code uses. Without `inputs`, all operands are inputs.
Run make_checkpoint(const HigherOrder& op, Bodies& bodies);

// register_hook(body, tensor, operands..., layout=flag) registers the body as a hook of the tensor. The body gets the
// gradient and the operands, and returns the gradient that replaces it, or nothing. `layout`: the body gets the
// gradient in row-major order. If an operand is another register_hook node, the body gets, in place of this operand,
// the gradient that the other hook has left. If the other hook has not run, the body does not run either.
Run make_hook(const HigherOrder& op, Bodies& bodies);

}  // namespace rehearse::graph
