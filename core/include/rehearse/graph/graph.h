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

// A list of nodes in an executable order, as in torch.fx. Owns its nodes. Neither copied nor moved, because nodes point
// to their graph; copy_graph_module() makes a copy. The cost of an operation depends only on what it touches: creating
// a node takes time linear in its arguments; erasing a node searches the lists of users of its inputs, from the latest
// user on.
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

  // Inserts a node at the insertion point. Makes its name from `name`, or from the target if `name` is empty, by the
  // rules of Namespace. Throws GraphError as Node::set_args() does; the name stays taken even then.
  Node& create_node(Op op, std::string target, List args = {}, Dict kwargs = {}, const std::string& name = "");
  Node& placeholder(std::string target, const std::string& name = "");
  Node& get_attr(std::string target, const std::string& name = "");
  Node& call_function(std::string target, List args, Dict kwargs = {}, const std::string& name = "");
  Node& call_method(std::string target, List args, Dict kwargs = {}, const std::string& name = "");
  Node& call_module(std::string target, List args, Dict kwargs = {}, const std::string& name = "");
  Node& output(Argument result);

  // Copies `node` of another graph, with the nodes in its arguments replaced by map(Node&). Copies its metadata, too.
  Node& copy_node(const Node& node, const std::function<Argument(Node&)>& map);

  // Removes and deletes the node. Throws GraphError if it still has users or belongs to another graph.
  void erase_node(Node& node);
  // Moves the node. Does not check the order. Throws GraphError if a node belongs to another graph.
  void move_before(Node& node, Node& before);

  // The place before or after a node. While the point lives, new nodes go to this place, in the order of creation.
  // Points nest: the latest one counts, and they must end in reverse order. If the node of the point is erased, new
  // nodes go to where it was.
  class InsertionPoint {
   public:
    InsertionPoint(Graph& graph, Node* before) : graph_(graph) { graph.points_.push_back(before); }
    ~InsertionPoint() { graph_.points_.pop_back(); }
    InsertionPoint(const InsertionPoint&) = delete;
    InsertionPoint& operator=(const InsertionPoint&) = delete;

   private:
    Graph& graph_;
  };
  // Throws GraphError if `node` belongs to another graph.
  [[nodiscard]] InsertionPoint inserting_before(Node& node) { return {*this, &own(node)}; }
  [[nodiscard]] InsertionPoint inserting_after(Node& node) { return {*this, own(node).next()}; }

  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  Node* first() const noexcept { return first_; }  // null if empty
  Node* last() const noexcept { return last_; }
  Node* find(std::string_view name) const noexcept;  // linear; null if there is none
  Node* output_node() const noexcept;                // the last node of Op::Output; null if there is none
  std::vector<Node*> placeholders() const;           // in order

  // for (Node& node : graph) visits nodes in order. The loop may change a node, but must not erase or move it.
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
  std::vector<Node*> points_;  // new nodes go before the last item; to the end if it is null or there is no item
  std::size_t size_ = 0;
};

}  // namespace rehearse::graph
