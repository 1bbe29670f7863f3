// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/graph/operators.h>

#include "graph/run/step.h"

namespace rehearse::graph {
namespace {

// A boxed call: the arguments are brought into the order of the schema once, defaults filled in.
class OperatorStep : public Step {
 public:
  OperatorStep(const Node& node, c10::OperatorHandle op) : node_(node), op_(std::move(op)) {
    const c10::FunctionSchema& schema = op_.schema();
    std::size_t used = 0;
    for (std::size_t i = 0; i < schema.arguments().size(); ++i) {
      const c10::Argument& formal = schema.arguments()[i];
      Slot& slot = slots_.emplace_back(Slot{&formal, nullptr, ""});
      const Argument* named = node.kwarg(formal.name());
      if (!formal.kwarg_only() && i < node.args().size()) {
        if (named != nullptr) throw GraphError(node.name(), "kwargs." + formal.name(), "is given by position too");
        slot.given = &node.args()[i];
        slot.field = "args[" + std::to_string(i) + "] (" + formal.name() + ")";
        ++used;
      } else if (named != nullptr) {
        slot.given = named;
        slot.field = "kwargs." + formal.name();
        ++used;
      } else if (!formal.default_value()) {
        throw GraphError(node.name(), formal.name(), "is missing; the operator is " + c10::toString(schema));
      }
    }
    if (used != node.args().size() + node.kwargs().size()) {
      throw GraphError(node.name(), "args", "has arguments that the operator does not take: " + c10::toString(schema));
    }
  }

  c10::IValue run(const ValueOf& value_of) const override {
    torch::jit::Stack stack;
    stack.reserve(slots_.size());
    for (const Slot& slot : slots_) {
      stack.push_back(slot.given == nullptr ? *slot.formal->default_value()
                                            : to_ivalue(*slot.given, *slot.formal->type(), slot.formal->N(), value_of,
                                                        node_, slot.field));
    }
    op_.callBoxed(stack);
    if (stack.empty()) return {};
    if (stack.size() == 1) return std::move(stack[0]);
    return c10::ivalue::Tuple::create(std::move(stack));
  }

 private:
  struct Slot {
    const c10::Argument* formal;
    const Argument* given;  // null: the default
    std::string field;
  };

  const Node& node_;
  c10::OperatorHandle op_;
  std::vector<Slot> slots_;
};

}  // namespace

std::unique_ptr<Step> make_operator_step(const Node& node) {
  std::optional<c10::OperatorHandle> op = find_operator(node.target());
  return op ? std::make_unique<OperatorStep>(node, *std::move(op)) : nullptr;
}

}  // namespace rehearse::graph
