// SPDX-License-Identifier: BSD-3-Clause
#include "capture/trace/recording/graph_builder.h"

#include <optional>
#include <utility>

#include "graph/ir/targets.h"

namespace rehearse::capture {

using graph::Graph;
using graph::Node;

void GraphBuilder::set_origin(exec::CallSite site) {
  site_ = std::move(site);
  owner_.clear();
  asked_from_.clear();
  label_.reset();
  origin_ = nullptr;
}

void GraphBuilder::set_communication(std::vector<void*> asked_from, std::optional<std::string> label) {
  asked_from_ = std::move(asked_from);
  label_ = std::move(label);
  origin_ = nullptr;
}

void GraphBuilder::set_owner(const std::string& module_path) {
  if (owner_ == module_path) return;
  owner_ = module_path;
  origin_ = nullptr;
}

std::shared_ptr<const graph::Origin> GraphBuilder::origin() {
  if (!origin_) {
    graph::Origin made;
    made.nn_module_stack = module_stack(owner_);
    made.site = site_;
    made.asked_from = asked_from_;
    made.label = label_;
    origin_ = std::make_shared<const graph::Origin>(std::move(made));
  }
  return origin_;
}

Node& GraphBuilder::placeholder(const std::string& name) {
  if (!first_call_) return graph().placeholder(name);
  const Graph::InsertionPoint here = graph().inserting_before(*first_call_);
  return graph().placeholder(name);
}

Node& GraphBuilder::call(const std::string& target, graph::List args, graph::Dict kwargs) {
  return added(graph().call_function(target, std::move(args), std::move(kwargs)));
}

Node& GraphBuilder::method(const std::string& name, graph::List args) {
  return added(graph().call_method(name, std::move(args)));
}

Node& GraphBuilder::added(Node& node) {
  node.meta().origin = origin();
  if (!first_call_) first_call_ = &node;
  return node;
}

Node& GraphBuilder::item(Node& producer, std::int64_t index) {
  Node* last = &producer;
  while (last->next() != nullptr && last->next()->target() == graph::kGetItem &&
         last->next()->input_nodes().front() == &producer) {
    last = last->next();
  }
  const Graph::InsertionPoint here = graph().inserting_after(*last);
  Node& item = graph().call_function(std::string(graph::kGetItem), {producer, index});
  item.meta().origin = producer.meta().origin;
  const graph::ValueMeta* value = producer.meta().value.get();
  const auto position = static_cast<std::size_t>(index);
  if (value && value->list() && position < value->list()->size()) item.meta().set_value((*value->list())[position]);
  return item;
}

std::string module_stack(const std::string& path) {
  std::string stack;
  for (std::size_t end = 0; end < path.size();) {
    end = std::min(path.find('.', end + 1), path.size());
    const std::string prefix = path.substr(0, end);
    stack += (stack.empty() ? "" : ";") + prefix + "," + prefix + ",";
  }
  return stack;
}

std::string owner_of(const std::string& parameter) {
  const std::size_t dot = parameter.rfind('.');
  return dot == std::string::npos ? "" : parameter.substr(0, dot);
}

}  // namespace rehearse::capture
