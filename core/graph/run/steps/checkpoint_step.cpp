// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include <rehearse_internal/parallel/captured_checkpoint.h>

#include "graph/run/steps/higher_order.h"

namespace rehearse::graph {
namespace {

bool is_tensor(const c10::IValue& value) { return value.isTensor(); }

// The body's results, with an undefined tensor in place of each tensor.
struct Rest {
  std::vector<c10::IValue> values;
  bool is_tuple = false;
};

// The body as a function of its tensor inputs; the other operands are fixed.
class Body {
 public:
  Body(std::shared_ptr<const RunnableGraph> graph, std::vector<c10::IValue> operands, std::size_t inputs)
      : graph_(std::move(graph)), operands_(std::move(operands)) {
    for (std::size_t i = 0; i < std::min(inputs, operands_.size()); ++i) {
      if (is_tensor(operands_[i])) positions_.push_back(i);
    }
  }

  std::vector<at::Tensor> take_inputs() {
    std::vector<at::Tensor> inputs;
    for (const std::size_t position : positions_) inputs.push_back(std::exchange(operands_[position], {}).toTensor());
    return inputs;
  }

  std::vector<at::Tensor> operator()(const std::vector<at::Tensor>& inputs, void* result) const {
    std::vector<c10::IValue> values = operands_;
    for (std::size_t i = 0; i < positions_.size(); ++i) values[positions_[i]] = inputs[i];
    c10::IValue given = graph_->run(std::move(values));
    Rest rest{.values = {}, .is_tuple = given.isTuple()};
    std::vector<at::Tensor> tensors;
    for (c10::IValue& value : items_of(std::move(given))) {
      rest.values.push_back(is_tensor(value) ? c10::IValue(at::Tensor()) : value);
      if (is_tensor(value)) tensors.push_back(std::move(value).toTensor());
    }
    if (result != nullptr) static_cast<std::optional<Rest>*>(result)->emplace(std::move(rest));
    return tensors;
  }

 private:
  std::shared_ptr<const RunnableGraph> graph_;
  std::vector<c10::IValue> operands_;
  std::vector<std::size_t> positions_;  // positions of the inputs among the operands
};

c10::IValue run_as_checkpoint(Body body) {
  const std::vector<at::Tensor> inputs = body.take_inputs();
  std::optional<Rest> rest;
  std::vector<at::Tensor> tensors = parallel::run_captured_checkpoint(std::move(body), inputs, &rest);
  auto next = tensors.begin();
  for (c10::IValue& value : rest->values) {
    if (is_tensor(value)) value = std::move(*next++);
  }
  if (!rest->is_tuple) return std::move(rest->values.front());
  return c10::ivalue::Tuple::create(std::move(rest->values));
}

}  // namespace

Run make_checkpoint(const HigherOrder& op, Bodies& bodies) {
  const Argument* const given = op.node().kwarg("inputs");
  const auto* const count = given != nullptr ? given->get_if<std::int64_t>() : nullptr;
  const std::size_t inputs = count != nullptr ? static_cast<std::size_t>(*count) : op.node().args().size();
  return [op, inputs, body = op.body(0, bodies)](const ValueOf& value_of) {
    return run_as_checkpoint(Body(body, op.rest(1, value_of), inputs));
  };
}

}  // namespace rehearse::graph
