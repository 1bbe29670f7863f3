// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/graph/operators.h>

#include <algorithm>
#include <optional>

#include <c10/core/impl/LocalDispatchKeySet.h>

#include "graph/run/call/bind_arguments.h"
#include "graph/run/steps/steps.h"

namespace rehearse::graph {
namespace {

// Autograd's kernel of an operator of LibTorch's own hides ADInplaceOrView from what the operator does inside, unless
// the operator is a view, is in place by its name, or has an `out`. A graph that runs below autograd has to do the
// same: otherwise, unsafe_split() gives views, and an operator that changes an argument may count that as a change. The
// kernel of _foreach_add_() calls add_(), which does count.
bool hides_views(const c10::OperatorHandle& op) {
  const std::string& name = op.operator_name().name;
  return name.starts_with("aten::") && !name.ends_with('_') &&
         std::ranges::none_of(op.schema().arguments(), &c10::Argument::is_out) &&
         op.hasKernelForDispatchKey(c10::DispatchKey::Autograd) &&
         !op.hasKernelForDispatchKey(c10::DispatchKey::ADInplaceOrView);
}

// A boxed call. The constructor brings the arguments into the order of the schema, once for all calls of run().
class OperatorStep : public Step {
 public:
  OperatorStep(const Node& node, c10::OperatorHandle op)
      : node_(node),
        op_(std::move(op)),
        hides_views_(hides_views(op_)),
        arguments_(bind_arguments(node, op_.schema())) {}

  c10::IValue run(const ValueOf& value_of) const override {
    torch::jit::Stack stack;
    stack.reserve(arguments_.size());
    for (const BoundArgument& argument : arguments_) {
      const c10::Argument& formal = *argument.formal;
      stack.push_back(argument.given == nullptr
                          ? *formal.default_value()
                          : to_ivalue(*argument.given, *formal.type(), formal.N(), value_of, node_, argument.field));
    }
    std::optional<c10::impl::ExcludeDispatchKeyGuard> no_views;
    if (hides_views_) no_views.emplace(c10::DispatchKey::ADInplaceOrView);
    op_.callBoxed(stack);
    if (stack.empty()) return {};
    if (stack.size() == 1) return std::move(stack[0]);
    return c10::ivalue::Tuple::create(std::move(stack));
  }

 private:
  const Node& node_;
  c10::OperatorHandle op_;
  bool hides_views_;
  std::vector<BoundArgument> arguments_;  // includes defaults
};

}  // namespace

std::unique_ptr<Step> make_operator_step(const Node& node) {
  std::optional<c10::OperatorHandle> op = find_operator(node.target());
  return op ? std::make_unique<OperatorStep>(node, *std::move(op)) : nullptr;
}

}  // namespace rehearse::graph
