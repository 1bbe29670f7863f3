// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <rehearse/graph/errors.h>
#include <rehearse/graph/namespace.h>
#include <rehearse/graph/node.h>

namespace rehearse::graph {

// A list of nodes in an order in which they can be run, as torch.fx has it. Owns its nodes. Not copied or
// moved: nodes point to their graph; see copy_graph_module() for a copy. All operations cost what they touch:
// creating a node its arguments, erasing one a search among the users of its inputs from the latest on.
//
//   Graph graph;
//   Node& x = graph.placeholder("x");
//   Node& y = graph.call_function("torch.ops.aten.add.Tensor", {x, 1});
//   graph.output({y});
class Graph {
 public:
  Graph() = default;
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // Inserts a node before the insertion point. Its name is made from `name`, or from the target where that is
  // empty, by the rules of Namespace. Throws GraphError as Node::set_args() does; the name is taken all the same.
  Node& create_node(Op op, std::string target, List args = {}, Dict kwargs = {}, const std::string& name = "");
  Node& placeholder(std::string target, const std::string& name = "");
  Node& get_attr(std::string target, const std::string& name = "");
  Node& call_function(std::string target, List args, Dict kwargs = {}, const std::string& name = "");
  Node& call_method(std::string target, List args, Dict kwargs = {}, const std::string& name = "");
  Node& call_module(std::string target, List args, Dict kwargs = {}, const std::string& name = "");
  Node& output(Argument result);

  // A node like `node` of another graph, its arguments' nodes replaced by map(Node&); metadata is shared.
  Node& copy_node(const Node& node, const std::function<Argument(Node&)>& map);

  // Removes and deletes it. Throws GraphError when it still has users.
  void erase_node(Node& node);
  // Moves it; the order is not checked.
  void move_before(Node& node, Node& before);

  // While it lives, new nodes come before `node`, or after it, in order of creation. The latest one counts; they end in
  // reverse order. Where the node before which they go is erased, they go where it stood.
  class InsertionPoint {
   public:
    InsertionPoint(Graph& graph, Node* before) : graph_(graph) { graph.points_.push_back(before); }
    ~InsertionPoint() { graph_.points_.pop_back(); }
    InsertionPoint(const InsertionPoint&) = delete;
    InsertionPoint& operator=(const InsertionPoint&) = delete;

   private:
    Graph& graph_;
  };
  // Throws GraphError when `node` is of another graph.
  [[nodiscard]] InsertionPoint inserting_before(Node& node) { return {*this, &own(node)}; }
  [[nodiscard]] InsertionPoint inserting_after(Node& node) { return {*this, own(node).next()}; }

  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  Node* first() const noexcept { return first_; }  // null when empty
  Node* last() const noexcept { return last_; }
  Node* find(std::string_view name) const noexcept;  // linear; null when there is none
  Node* output_node() const noexcept;                // the last node of Op::Output; null when there is none
  std::vector<Node*> placeholders() const;           // in order

  // for (Node& node : graph): in order. A node may be changed on the way, but not erased or moved.
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = Node;
    using difference_type = std::ptrdiff_t;
    using pointer = Node*;
    using reference = Node&;
    explicit Iterator(Node* node = nullptr) : node_(node) {}
    Node& operator*() const { return *node_; }
    Node* operator->() const { return node_; }
    Iterator& operator++() {
      node_ = node_->next();
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      node_ = node_->next();
      return before;
    }
    bool operator==(const Iterator&) const = default;

   private:
    Node* node_;
  };
  Iterator begin() const { return Iterator(first_); }
  Iterator end() const { return Iterator(nullptr); }

 private:
  Node& own(Node& node) const;
  void link(Node& node, Node* before);
  void unlink(Node& node);

  Namespace names_;
  Node* first_ = nullptr;
  Node* last_ = nullptr;
  std::vector<Node*> points_;  // where new nodes go: before the last one; null or none: the end
  std::size_t size_ = 0;
};

}  // namespace rehearse::graph
