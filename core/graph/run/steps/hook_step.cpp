// SPDX-License-Identifier: BSD-3-Clause
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>
#include <c10/util/intrusive_ptr.h>

#include "graph/ir/hooks.h"
#include "graph/run/steps/higher_order.h"

namespace rehearse::graph {
namespace {

// The gradient after a hook, for another hook that uses it.
struct LeftGradient final : torch::CustomClassHolder {
  at::Tensor gradient;
};

LeftGradient* left_in(const c10::IValue& operand) {
  return operand.isCapsule() ? dynamic_cast<LeftGradient*>(operand.toCapsule().get()) : nullptr;
}

// The gradient that the body of a hook gets.
enum class BodyGets {
  as_it_is,
  row_major,       // a copy in row-major order, unless the gradient has this order
  same_row_major,  // the same, and the body just returns it, so the hook also accepts an undefined gradient
};

BodyGets body_gets(const HigherOrder& op) {
  const Argument* const layout = op.node().kwarg("layout");
  const bool* const row_major = layout != nullptr ? layout->get_if<bool>() : nullptr;
  if (row_major == nullptr || !*row_major) return BodyGets::as_it_is;
  return only_makes_row_major(op.node(), op.module()) ? BodyGets::same_row_major : BodyGets::row_major;
}

// A tensor hook whose code is a graph. Detaches its operands, because their history may lead to the hooked tensor. Then
// the hook and the tensor would keep each other alive.
class GraphHook {
 public:
  GraphHook(std::shared_ptr<const RunnableGraph> body, std::vector<c10::IValue> operands, std::string node,
            BodyGets body_gets)
      : body_(std::move(body)), operands_(std::move(operands)), node_(std::move(node)), body_gets_(body_gets) {
    for (c10::IValue& operand : operands_) {
      if (!operand.isTensor() || !operand.toTensor().defined()) continue;
      has_history_ = has_history_ || operand.toTensor().requires_grad();
      operand = operand.toTensor().detach();
    }
  }

  void leave_in(c10::intrusive_ptr<LeftGradient> left) { left_ = std::move(left); }

  at::Tensor operator()(const at::Tensor& gradient) const {
    if (body_gets_ == BodyGets::same_row_major && !gradient.defined()) return gradient;
    TORCH_CHECK(gradient.defined(), "the captured hook '", node_,
                "' is called with an undefined gradient, and was captured with a defined one. Register it outside of "
                "the captured function");
    TORCH_CHECK(!at::GradMode::is_enabled() || !has_history_, "the captured hook '", node_,
                "' uses a tensor that requires grad, so that its gradient cannot be differentiated again "
                "(create_graph). Register it outside of the captured function");
    const bool is_row_major = body_gets_ != BodyGets::as_it_is;
    std::vector<c10::IValue> inputs = {is_row_major ? gradient.contiguous() : gradient};
    for (const c10::IValue& operand : operands_) {
      LeftGradient* const left = left_in(operand);
      if (left != nullptr && !left->gradient.defined()) return {};
      inputs.push_back(left != nullptr ? c10::IValue(std::exchange(left->gradient, {})) : operand);
    }
    const std::vector<c10::IValue> given = items_of(body_->run(inputs));
    // Even without a result, the code may have written to the row-major copy.
    const at::Tensor result = given.empty() ? inputs.front().toTensor() : given.front().toTensor();
    if (left_) left_->gradient = result;
    return given.empty() && !is_row_major ? at::Tensor() : result;
  }

 private:
  std::shared_ptr<const RunnableGraph> body_;
  std::vector<c10::IValue> operands_;
  std::string node_;
  BodyGets body_gets_;
  bool has_history_ = false;
  c10::intrusive_ptr<LeftGradient> left_;  // null: no hook uses it
};

}  // namespace

Run make_hook(const HigherOrder& op, Bodies& bodies) {
  return [op, gets = body_gets(op), body = op.body(0, bodies)](const ValueOf& value_of) -> c10::IValue {
    const at::Tensor tensor = op.value(1, value_of).toTensor();
    if (!tensor.requires_grad()) return {};  // no backward will reach it
    GraphHook hook(body, op.rest(2, value_of), op.node().name(), gets);
    c10::IValue left;
    if (!op.node().users().empty()) {
      auto cell = c10::make_intrusive<LeftGradient>();
      hook.leave_in(cell);
      left = c10::IValue::make_capsule(std::move(cell));
    }
    tensor.register_hook(std::move(hook));
    return left;
  };
}

}  // namespace rehearse::graph
