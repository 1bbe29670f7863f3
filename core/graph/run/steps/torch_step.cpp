// SPDX-License-Identifier: BSD-3-Clause
#include "graph/run/call/overloads.h"
#include "graph/run/steps/nn_functional.h"
#include "graph/run/steps/steps.h"

namespace rehearse::graph {
namespace {

class AtenStep : public Step {
 public:
  AtenStep(const Node& node, AtenCall call, Dict kwargs)
      : node_(node), args_(std::move(call.args)), kwargs_(std::move(kwargs)), op_(call.op) {}

  bool is_known() const { return !op_.empty(); }
  c10::IValue run(const ValueOf& value_of) const override { return op_.call(node_, args_, kwargs_, 0, value_of); }

 private:
  const Node& node_;
  List args_;
  Dict kwargs_;
  Overloads op_;
};

// torch._check(condition, message). The message is a Python function, which a graph does not contain.
class CheckStep : public Step {
 public:
  explicit CheckStep(const Node& node) : node_(node) {
    if (node.args().empty()) throw GraphError(node.name(), "args", "a check needs a condition");
  }
  c10::IValue run(const ValueOf& value_of) const override {
    const c10::IValue condition = to_ivalue(node_.args()[0], value_of, node_, "args[0]");
    if (!condition.isBool()) throw GraphError(node_.name(), "args[0]", "must be a bool, and is " + condition.tagKind());
    if (!condition.toBool()) throw GraphError(node_.name(), "args[0]", "the check failed");
    return {};
  }

 private:
  const Node& node_;
};

// The name of the ATen operator for targets like `torch.relu` and `torch._C._nn.linear`; empty for other targets.
std::string_view name_in_torch(std::string_view target) {
  for (const std::string_view prefix : {"torch._C._nn.", "torch."}) {
    if (!target.starts_with(prefix)) continue;
    const std::string_view name = target.substr(prefix.size());
    if (name.find('.') == std::string_view::npos) return name;
  }
  return "";
}

}  // namespace

std::unique_ptr<Step> make_torch_step(const Node& node) {
  if (node.target() == "torch._check") return std::make_unique<CheckStep>(node);
  if (auto call = functional_call(node)) return std::make_unique<AtenStep>(node, *std::move(call), Dict{});
  const std::string_view name = name_in_torch(node.target());
  auto step = std::make_unique<AtenStep>(node, AtenCall{std::string(name), node.args()}, node.kwargs());
  return step->is_known() ? std::move(step) : nullptr;
}

}  // namespace rehearse::graph
