// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/graph/interpreter.h>

#include <utility>

#include "graph/ir/submodules.h"
#include "graph/run/runnable_graph.h"

namespace rehearse::graph {
namespace {

std::unique_ptr<RunnableGraph> runnable(std::shared_ptr<const GraphModule> module) {
  if (module == nullptr) throw GraphError("", "module", "is null");
  check_nesting(*module);
  Bodies bodies;
  return std::make_unique<RunnableGraph>(std::move(module), bodies);
}

}  // namespace

Interpreter::Interpreter(std::shared_ptr<const GraphModule> module) : graph_(runnable(std::move(module))) {}
Interpreter::~Interpreter() = default;
Interpreter::Interpreter(Interpreter&&) noexcept = default;
Interpreter& Interpreter::operator=(Interpreter&&) noexcept = default;

std::vector<c10::IValue> Interpreter::run(std::vector<c10::IValue> inputs) const {
  return items_of(graph_->run(std::move(inputs)));
}

void Interpreter::set_observer(std::function<void(const Node&, const c10::IValue&)> observer) {
  graph_->set_observer(std::move(observer));
}

}  // namespace rehearse::graph
