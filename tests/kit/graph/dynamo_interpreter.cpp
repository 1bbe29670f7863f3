// SPDX-License-Identifier: BSD-3-Clause
#include "kit/graph/dynamo_interpreter.h"

#include <utility>

#include "graph/run/call/communication.h"
#include "kit/graph/dynamo_steps.h"

namespace rehearse::graph {
namespace {

std::unique_ptr<Step> make_dynamo_step(const Node& node, const GraphModule& module, Bodies& bodies) {
  std::unique_ptr<Step> step;
  if (node.op() == Op::CallModule) step = make_leaf_step(node, module);
  if (node.op() == Op::CallMethod && !is_method_of_work(node)) step = make_method_step(node);
  if (node.op() == Op::CallFunction) {
    step = make_step_on_tensors(node);
    if (step == nullptr) step = make_torch_step(node);
  }
  return step != nullptr ? std::move(step) : make_step(node, module, bodies);
}

}  // namespace

DynamoInterpreter::DynamoInterpreter(std::shared_ptr<const GraphModule> module) {
  Bodies bodies(make_dynamo_step);
  graph_ = std::make_unique<RunnableGraph>(std::move(module), bodies);
}

std::vector<c10::IValue> DynamoInterpreter::run(std::vector<c10::IValue> inputs) const {
  return items_of(graph_->run(std::move(inputs)));
}

void DynamoInterpreter::set_observer(std::function<void(const Node&, const c10::IValue&)> observer) {
  graph_->set_observer(std::move(observer));
}

}  // namespace rehearse::graph
