// SPDX-License-Identifier: BSD-3-Clause
#include <functional>

#include <ATen/core/grad_mode.h>

#include "graph/ir/targets.h"
#include "graph/run/runnable_graph.h"
#include "graph/run/steps/autocast_scope.h"
#include "graph/run/steps/steps.h"
#include "graph/text/enum_names.h"

namespace rehearse::graph {
namespace {

// What all higher-order operators share: bodies that are attributes of the module, and operands.
class HigherOrder {
 public:
  HigherOrder(const Node& node, const GraphModule& module) : node_(node), module_(module) {}

  const Node& node() const { return node_; }

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

  // The items of the list at `index`; none when there is no such argument.
  std::vector<c10::IValue> items(std::size_t index, const ValueOf& value_of) const {
    if (index >= node_.args().size()) return {};
    const c10::IValue list = value(index, value_of);
    if (list.isNone()) return {};
    if (!list.isTuple()) throw GraphError(node_.name(), field(index), "must be a list of operands");
    return list.toTupleRef().elements().vec();
  }

  // The arguments from `first` on.
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

// wrap(body, operands...), tag_activation_checkpoint(body, operands...), invoke_subgraph(body, name, operands...)
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
  if (name == "wrap" || name == "tag_activation_checkpoint") run = make_plain(op, bodies, 1);
  if (name == "invoke_subgraph") run = make_plain(op, bodies, 2);
  return run ? std::make_unique<HigherOrderStep>(std::move(run)) : nullptr;
}

}  // namespace rehearse::graph
