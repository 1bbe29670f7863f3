// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/graph/graph.h>

#include <algorithm>
#include <utility>

#include <rehearse_internal/exec/check.h>

namespace rehearse::graph {

Graph::~Graph() {
  for (Node* node = first_; node != nullptr;) delete std::exchange(node, node->next_);
}

Node& Graph::create_node(Op op, std::string target, List args, Dict kwargs, const std::string& name) {
  const std::string unique = names_.create_name(name.empty() ? name_from_target(target, op == Op::CallFunction) : name);
  auto node = std::make_unique<Node>(Node::Key(), *this, op, unique, std::move(target));
  node->set_args(std::move(args));
  try {
    node->set_kwargs(std::move(kwargs));
  } catch (...) {
    node->set_args({});
    throw;
  }
  link(*node, points_.empty() ? nullptr : points_.back());
  return *node.release();
}

Node& Graph::placeholder(std::string target, const std::string& name) {
  return create_node(Op::Placeholder, std::move(target), {}, {}, name);
}

Node& Graph::get_attr(std::string target, const std::string& name) {
  return create_node(Op::GetAttr, std::move(target), {}, {}, name);
}

Node& Graph::call_function(std::string target, List args, Dict kwargs, const std::string& name) {
  return create_node(Op::CallFunction, std::move(target), std::move(args), std::move(kwargs), name);
}

Node& Graph::call_method(std::string target, List args, Dict kwargs, const std::string& name) {
  return create_node(Op::CallMethod, std::move(target), std::move(args), std::move(kwargs), name);
}

Node& Graph::call_module(std::string target, List args, Dict kwargs, const std::string& name) {
  return create_node(Op::CallModule, std::move(target), std::move(args), std::move(kwargs), name);
}

Node& Graph::output(Argument result) {
  List args;
  args.push_back(std::move(result));
  return create_node(Op::Output, "output", std::move(args));
}

Node& Graph::copy_node(const Node& node, const std::function<Argument(Node&)>& map) {
  Node& copy = create_node(node.op(), node.target(), map_nodes(Argument(node.args()), map).as<List>(),
                           map_nodes(Argument(node.kwargs()), map).as<Dict>(), node.name());
  copy.meta() = node.meta();
  return copy;
}

void Graph::erase_node(Node& node) {
  if (&node.graph() != this) throw GraphError(node.name(), "", "cannot be erased: it is a node of another graph");
  if (!node.users().empty()) {
    std::string users;
    for (const Node* user : node.users()) users += (users.empty() ? "'" : ", '") + user->name() + "'";
    throw GraphError(node.name(), "users", "cannot be erased while it has users: " + users);
  }
  node.set_args({});
  node.set_kwargs({});
  std::replace(points_.begin(), points_.end(), &node, node.next_);
  unlink(node);
  delete &node;
}

void Graph::move_before(Node& node, Node& before) {
  if (&node.graph() != this || &before.graph() != this) {
    throw GraphError(node.name(), "", "cannot be moved before '" + before.name() + "': both must be of this graph");
  }
  if (&node == &before) return;
  unlink(node);
  link(node, &before);
}

Node* Graph::find(std::string_view name) const noexcept {
  for (Node& node : *this) {
    if (node.name() == name) return &node;
  }
  return nullptr;
}

Node* Graph::output_node() const noexcept {
  for (Node* node = last_; node != nullptr; node = node->prev_) {
    if (node->op() == Op::Output) return node;
  }
  return nullptr;
}

std::vector<Node*> Graph::placeholders() const {
  std::vector<Node*> found;
  for (Node& node : *this) {
    if (node.op() == Op::Placeholder) found.push_back(&node);
  }
  return found;
}

Node& Graph::own(Node& node) const {
  if (&node.graph() != this) throw GraphError(node.name(), "", "is a node of another graph");
  return node;
}

void Graph::link(Node& node, Node* before) {
  REHEARSE_CHECK(node.prev_ == nullptr && node.next_ == nullptr && first_ != &node, node.name());  // is in no list
  node.next_ = before;
  node.prev_ = before != nullptr ? before->prev_ : last_;
  (node.prev_ != nullptr ? node.prev_->next_ : first_) = &node;
  (before != nullptr ? before->prev_ : last_) = &node;
  ++size_;
}

void Graph::unlink(Node& node) {
  REHEARSE_CHECK((node.prev_ == nullptr) == (first_ == &node) && (node.next_ == nullptr) == (last_ == &node),
                 node.name());
  (node.prev_ != nullptr ? node.prev_->next_ : first_) = node.next_;
  (node.next_ != nullptr ? node.next_->prev_ : last_) = node.prev_;
  node.prev_ = node.next_ = nullptr;
  --size_;
}

}  // namespace rehearse::graph
