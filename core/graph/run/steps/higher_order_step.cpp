// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/core/grad_mode.h>

#include "graph/ir/targets.h"
#include "graph/run/runnable_graph.h"
#include "graph/run/steps/autocast_scope.h"
#include "graph/run/steps/higher_order.h"
#include "graph/run/steps/steps.h"
#include "graph/text/enum_names.h"

namespace rehearse::graph {
namespace {

// cond(predicate, true body, false body, operands)
Run make_cond(const HigherOrder& op, Bodies& bodies) {
  return [op, yes = op.body(1, bodies), no = op.body(2, bodies)](const ValueOf& value_of) {
    const bool predicate = op.truth(op.value(0, value_of), "args[0]");
    return (predicate ? yes : no)->run(op.items(3, value_of));
  };
}

// while_loop(condition body, loop body, carried, additional)
Run make_while_loop(const HigherOrder& op, Bodies& bodies) {
  return [op, condition = op.body(0, bodies), body = op.body(1, bodies)](const ValueOf& value_of) {
    std::vector<c10::IValue> carried = op.items(2, value_of);
    const std::vector<c10::IValue> additional = op.items(3, value_of);
    const std::size_t count = carried.size();
    auto operands = [&] {
      std::vector<c10::IValue> all = carried;
      all.insert(all.end(), additional.begin(), additional.end());
      return all;
    };
    while (op.truth(condition->run(operands()), "the condition")) {
      carried = items_of(body->run(operands()));
      if (carried.size() != count) {
        throw GraphError(
            op.node().name(), "args[1]",
            "the body must return " + std::to_string(count) + " values, and returns " + std::to_string(carried.size()));
      }
    }
    return c10::IValue(c10::ivalue::Tuple::create(std::move(carried)));
  };
}

// wrap_with_set_grad_enabled(enabled, body, operands...)
Run make_set_grad(const HigherOrder& op, Bodies& bodies) {
  return [op, body = op.body(1, bodies)](const ValueOf& value_of) {
    const at::AutoGradMode mode(op.truth(op.value(0, value_of), "args[0]"));
    return body->run(op.rest(2, value_of));
  };
}

// wrap_with_autocast(device type, dtype, enabled, cache enabled, body, operands...)
Run make_autocast(const HigherOrder& op, Bodies& bodies) {
  const auto* device = op.argument(0).get_if<std::string>();
  const auto known = device != nullptr ? device_of(*device) : std::nullopt;
  if (!known) throw GraphError(op.node().name(), "args[0]", "must name a type of device");
  return [op, device = known->type(), body = op.body(4, bodies)](const ValueOf& value_of) {
    const auto* dtype = op.argument(1).get_if<c10::ScalarType>();
    const auto* cache = op.argument(3).get_if<bool>();
    const AutocastScope scope(device, op.truth(op.value(2, value_of), "args[2]"),
                              dtype ? std::optional(*dtype) : std::nullopt,
                              cache ? std::optional(*cache) : std::nullopt);
    return body->run(op.rest(5, value_of));
  };
}

// wrap(body, operands...), invoke_subgraph(body, name, operands...)
Run make_plain(const HigherOrder& op, Bodies& bodies, std::size_t first_operand) {
  return [op, first_operand, body = op.body(0, bodies)](const ValueOf& value_of) {
    return body->run(op.rest(first_operand, value_of));
  };
}

class HigherOrderStep : public Step {
 public:
  explicit HigherOrderStep(Run run) : run_(std::move(run)) {}
  c10::IValue run(const ValueOf& value_of) const override { return run_(value_of); }

 private:
  Run run_;
};

}  // namespace

std::unique_ptr<Step> make_higher_order_step(const Node& node, const GraphModule& module, Bodies& bodies) {
  if (!node.target().starts_with(kHigherOrder)) return nullptr;
  const std::string_view name = std::string_view(node.target()).substr(kHigherOrder.size());
  const HigherOrder op(node, module);
  Run run;
  if (name == "cond") run = make_cond(op, bodies);
  if (name == "while_loop") run = make_while_loop(op, bodies);
  if (name == "wrap_with_set_grad_enabled") run = make_set_grad(op, bodies);
  if (name == "wrap_with_autocast") run = make_autocast(op, bodies);
  if (name == "wrap") run = make_plain(op, bodies, 1);
  if (name == "tag_activation_checkpoint") run = make_checkpoint(op, bodies);
  if (node.target() == kRegisterHook) run = make_hook(op, bodies);
  if (name == "invoke_subgraph") run = make_plain(op, bodies, 2);
  return run ? std::make_unique<HigherOrderStep>(std::move(run)) : nullptr;
}

}  // namespace rehearse::graph
