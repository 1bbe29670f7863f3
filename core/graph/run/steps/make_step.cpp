// SPDX-License-Identifier: BSD-3-Clause
#include "graph/run/call/communication.h"
#include "graph/run/runnable_graph.h"
#include "graph/run/steps/steps.h"

namespace rehearse::graph {
namespace {

// Returns an attribute's tensor. The value of a submodule is none, because higher-order operators look up their
// submodules themselves.
class AttributeStep : public Step {
 public:
  AttributeStep(const Node& node, const GraphModule& module) {
    if (module.find_submodule(node.target()) != nullptr) return;
    const Attribute* attribute = module.find_attribute(node.target());
    if (attribute == nullptr) throw GraphError(node.name(), "target", "there is no attribute '" + node.target() + "'");
    if (!attribute->tensor.defined()) {
      throw GraphError(node.name(), "target", "the attribute '" + node.target() + "' has no data");
    }
    value_ = attribute->tensor;
  }
  c10::IValue run(const ValueOf&) const override { return value_; }

 private:
  c10::IValue value_;
};

class ModuleStep : public Step {
 public:
  ModuleStep(const Node& node, const GraphModule& module, Bodies& bodies) : node_(node) {
    const auto called = module.find_submodule(node.target());
    if (called == nullptr) throw GraphError(node.name(), "target", "there is no submodule '" + node.target() + "'");
    if (called->is_leaf()) {
      throw GraphError(node.name(), "target",
                       "the submodule '" + node.target() + "' (" + called->type() + ") has no graph");
    }
    body_ = bodies.of(called);
    if (!node.kwargs().empty()) {
      throw GraphError(node.name(), "kwargs", "a submodule is called with positional arguments only");
    }
  }

  c10::IValue run(const ValueOf& value_of) const override {
    std::vector<c10::IValue> inputs;
    for (std::size_t i = 0; i < node_.args().size(); ++i) {
      inputs.push_back(to_ivalue(node_.args()[i], value_of, node_, "args[" + std::to_string(i) + "]"));
    }
    return body_->run(std::move(inputs));
  }

 private:
  const Node& node_;
  std::shared_ptr<const RunnableGraph> body_;
};

std::unique_ptr<Step> make_own_step(const Node& node, const GraphModule& module, Bodies& bodies) {
  switch (node.op()) {
    case Op::GetAttr:
      return std::make_unique<AttributeStep>(node, module);
    case Op::CallModule:
      return std::make_unique<ModuleStep>(node, module, bodies);
    case Op::CallMethod:
      if (auto step = make_work_step(node)) return step;
      break;
    case Op::CallFunction:
      if (auto step = make_operator_step(node)) return step;
      if (auto step = make_python_step(node)) return step;
      if (auto step = make_higher_order_step(node, module, bodies)) return step;
      if (auto step = make_mode_step(node)) return step;
      throw GraphError(node.name(), "target",
                       "'" + node.target() +
                           "' is no operator of this LibTorch, and no function that the "
                           "interpreter knows");
    default:
      break;
  }
  throw GraphError(
      node.name(), "op",
      std::string(to_string(node.op())) + " '" + node.target() + "' cannot be run; operators of the dispatcher can");
}

}  // namespace

std::unique_ptr<Step> make_step(const Node& node, const GraphModule& module, Bodies& bodies) {
  std::unique_ptr<Step> step = make_own_step(node, module, bodies);
  return communicates(node) ? in_the_name_of(node, std::move(step)) : std::move(step);
}

}  // namespace rehearse::graph
