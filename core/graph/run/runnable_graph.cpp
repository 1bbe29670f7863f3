// SPDX-License-Identifier: BSD-3-Clause
#include "graph/run/runnable_graph.h"

#include <utility>

#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>

namespace rehearse::graph {
namespace {

std::string describe(const Node& node) {
  const std::string line = node.meta().source_line();
  return "in node '" + node.name() + "', " + node.target() + (line.empty() ? "" : ", from " + line);
}

// Destroys values in reverse order, even after an exception, because the autocast that was entered last must end first.
class Values : public std::vector<c10::IValue> {
 public:
  using std::vector<c10::IValue>::vector;
  Values(const Values&) = delete;
  Values& operator=(const Values&) = delete;
  ~Values() {
    while (!empty()) pop_back();
  }
};

c10::IValue run_step(const Step& step, const Node& node, const ValueOf& value_of) {
  try {
    return step.run(value_of);
  } catch (c10::Error& error) {
    error.add_context(describe(node));
    throw;
  }
}

}  // namespace

RunnableGraph::RunnableGraph(std::shared_ptr<const GraphModule> module, Bodies& bodies) : module_(std::move(module)) {
  for (const Node& node : module_->graph()) {
    check_place(node);
    slots_.emplace(&node, slots_.size());
    Entry& entry = entries_.emplace_back(Entry{&node, nullptr, {}});
    if (node.op() == Op::Placeholder) ++inputs_;
    if (node.op() == Op::Output) output_ = &node;
    if (node.op() != Op::Placeholder && node.op() != Op::Output) entry.step = bodies.step(node, *module_);
  }
  if (output_ == nullptr) throw GraphError("", "graph", "has no output");
  find_last_uses();
}

void RunnableGraph::check_place(const Node& node) const {
  for (const Node* input : node.input_nodes()) {
    if (!slots_.contains(input))
      throw GraphError(node.name(), "args", "'" + input->name() + "' does not stand before it");
  }
  if (node.op() != Op::Output) return;
  if (output_ != nullptr) throw GraphError(node.name(), "op", "there is another output, '" + output_->name() + "'");
  if (node.args().size() != 1) throw GraphError(node.name(), "args", "an output has exactly one");
}

void RunnableGraph::find_last_uses() {
  std::vector<bool> used(entries_.size(), false);
  for (std::size_t i = entries_.size(); i-- > 0;) {
    Entry& entry = entries_[i];
    if (entry.node->users().empty()) entry.last_uses.push_back(i);
    for (const Node* input : entry.node->input_nodes()) {
      const std::size_t slot = slots_.at(input);
      if (!used[slot]) entry.last_uses.push_back(slot);
      used[slot] = true;
    }
  }
}

c10::IValue RunnableGraph::run(std::vector<c10::IValue> inputs) const {
  if (inputs.size() != inputs_) {
    throw GraphError("", "inputs",
                     "there must be " + std::to_string(inputs_) + ", and there are " + std::to_string(inputs.size()));
  }
  const at::AutoGradMode mode_of_caller(at::GradMode::is_enabled());  // restores grad mode, which the graph may change
  Values values(entries_.size());
  const ValueOf value_of = [&](const Node& node) -> const c10::IValue& { return values[slots_.at(&node)]; };
  auto next_input = inputs.begin();
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    if (entry.node == output_) return to_ivalue(output_->args()[0], value_of, *output_, "args[0]");
    values[i] = entry.step == nullptr ? std::move(*next_input++) : run_step(*entry.step, *entry.node, value_of);
    if (!observer_) {
      for (const std::size_t slot : entry.last_uses) values[slot] = {};
      continue;
    }
    const c10::IValue value = values[i];
    for (const std::size_t slot : entry.last_uses) values[slot] = {};
    observer_(*entry.node, value);
  }
  return {};
}

std::vector<c10::IValue> items_of(c10::IValue value) {
  if (!value.isTuple()) return {std::move(value)};
  return value.toTupleRef().elements().vec();
}

std::shared_ptr<const RunnableGraph> Bodies::of(const std::shared_ptr<const GraphModule>& module) {
  const auto known = made_.find(module.get());
  if (known != made_.end()) return known->second;
  return made_[module.get()] = std::make_shared<const RunnableGraph>(module, *this);
}

}  // namespace rehearse::graph
