// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <rehearse/graph/argument.h>
#include <rehearse/graph/metadata.h>

namespace rehearse::graph {

class Graph;

// fx's opcodes. The meaning of target and args:
//   Placeholder   target: the name of the input        args: empty, or the input's default value
//   GetAttr       target: attribute or submodule of the GraphModule, `encoder.weight`
//   CallFunction  target: an operator as fx spells it, `torch.ops.aten.add.Tensor`, or any other callable:
//                 `_operator.getitem`, `torch._C._nn.linear`, `torch.ops.higher_order.cond`. A higher-order
//                 operator's bodies are GetAttr nodes of submodules among its args.
//   CallMethod    target: the method's name            args[0]: self
//   CallModule    target: the submodule
//   Output        target: "output"                     args[0]: the result of the graph
enum class Op { Placeholder, GetAttr, CallFunction, CallMethod, CallModule, Output };

std::string_view to_string(Op op) noexcept;  // "call_function", ...
std::optional<Op> op_from_string(std::string_view text) noexcept;

// One step of a graph. Its Graph makes, owns and deletes it; its address does not change. The set functions keep the
// lists of users up to date.
class Node {
 public:
  // Lets only Graph make nodes.
  class Key {
    friend class Graph;
    Key() = default;
  };
  Node(Key, Graph& graph, Op op, std::string name, std::string target);
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  Graph& graph() const noexcept { return *graph_; }
  Op op() const noexcept { return op_; }
  const std::string& name() const noexcept { return name_; }  // unique in the graph
  const std::string& target() const noexcept { return target_; }

  const List& args() const noexcept { return args_; }
  const Dict& kwargs() const noexcept { return kwargs_; }
  const Argument* kwarg(std::string_view name) const noexcept;  // null if there is none

  // Throws GraphError, and changes nothing, if a node in the arguments belongs to another graph, if kwargs or the keys
  // of a dict are not unique, or if values are nested deeper than kMaxNesting.
  void set_args(List args);
  void set_kwargs(Dict kwargs);

  // The nodes in args, then kwargs, in order, each once.
  const std::vector<Node*>& input_nodes() const noexcept { return inputs_; }
  // The nodes that use this one, each once, in the order in which their arguments were last set.
  const std::vector<Node*>& users() const noexcept { return users_; }

  // Replaces `old` by `replacement` wherever `old` occurs in this node's arguments.
  void replace_input_with(Node& old, Node& replacement);
  // Replaces this node by `replacement` in all users, except in `replacement` itself. Returns the nodes that changed.
  std::vector<Node*> replace_all_uses_with(Node& replacement);

  Metadata& meta() noexcept { return meta_; }
  const Metadata& meta() const noexcept { return meta_; }

  // Neighbours in the graph's order; null at its ends.
  Node* next() const noexcept { return next_; }
  Node* prev() const noexcept { return prev_; }

 private:
  friend class Graph;
  void update_inputs();
  void drop_user(const Node& user);

  Graph* graph_;
  Op op_;
  std::string name_;
  std::string target_;
  List args_;
  Dict kwargs_;
  std::vector<Node*> inputs_;
  std::vector<Node*> users_;
  Metadata meta_;
  Node* next_ = nullptr;
  Node* prev_ = nullptr;
};

}  // namespace rehearse::graph
