// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <rehearse/graph/graph_module.h>
#include <rehearse_internal/capture/fake_mode.h>

#include "capture/graph/expression_nodes.h"

namespace rehearse::capture {

// Notes which fakes will be ZeroTensors when the graph runs. The gradient of sgn() is one: it has no memory. Autograd
// adds another gradient to it out of place, but adds two ordinary gradients in place. A fake does not show the
// difference.
class ZeroTensors {
 public:
  void note(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments, c10::ArrayRef<c10::IValue> results);
  // The operator to record for a call of `op`: `op` itself, or add() in place of add_() if that would write to a
  // ZeroTensor.
  c10::OperatorHandle callable(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments) const;

 private:
  bool has(const c10::IValue& value) const;

  std::unordered_set<std::uint64_t> zeros_;  // by fake_id()
};

// Maps numbers of the captured graph to nodes of its joint graph. While the captured graph runs on fakes, the facts
// that it states are assumed. So the value of a stated condition such as `u0 <= 5` is known: it is true. The joint
// graph must still compute the condition, so the condition has a node here, too.
class NumbersOfGraph {
 public:
  explicit NumbersOfGraph(graph::GraphModule& joint) : joint_(joint) {}

  // Declares that `node` of the captured graph has the value of `joint`.
  void bind(const graph::Node& node, graph::Node& joint) { nodes_.insert_or_assign(&node, &joint); }

  // Translates an argument of a node of the captured graph, using arithmetic on bound nodes. Throws GraphError if that
  // is not possible.
  graph::Argument of(const graph::Argument& argument);

 private:
  graph::Node& of(const graph::Node& node);

  graph::GraphModule& joint_;
  std::unordered_map<const graph::Node*, graph::Node*> nodes_;
};

// True for a defined tensor.
bool is_tensor(const c10::IValue& value);

// Records the operators that are called on fakes below autograd as the nodes of a joint graph.
class JointRecorder final : public FakeListener {
 public:
  // `part`: the captured graph that runs; its attributes may occur as real tensors. `joint`: receives the new nodes.
  JointRecorder(const graph::GraphModule& part, graph::GraphModule& joint);

  // Adds a placeholder for `placeholder` of the captured graph, with this value.
  graph::Node& add_input(const graph::Node& placeholder, const c10::IValue& value);
  // Adds a placeholder after the other placeholders and before all calls, for a fake or an integer. Other values get no
  // metadata.
  graph::Node& add_placeholder(const std::string& name, const c10::IValue& value);

  // The node that has this fake's current value: after an in-place operator that returns the fake, that operator's
  // node. Null: no node has it.
  graph::Node* node_of(const at::Tensor& fake) const;
  ExpressionNodes& expressions() noexcept { return expressions_; }

  // If result `output` of the captured graph is an integer that depends on data, returns the node that computes it,
  // even if the recording knows the integer from a fact that the code stated. Returns an empty argument for other
  // results.
  graph::Argument unbacked_result(std::size_t output);

  // True if an operator has written to the memory that `fake` shares.
  bool was_written(const at::Tensor& fake) const;

  // True if grad mode was off when this node was called.
  bool is_without_grad_mode(const graph::Node& node) const { return without_grad_mode_.contains(&node); }

  // Call these before and after one node of the captured graph runs. Nodes that were recorded in between and have no
  // origin get the origin of the captured graph's node. So do nodes of the backward if they belong to autograd steps
  // that were made in between.
  void begin_of_node(const graph::Node& node);
  void end_of_node(const graph::Node& node, const c10::IValue& value);

  at::Tensor fake_of(const at::Tensor& real) override;
  void on_operator(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments,
                   c10::ArrayRef<c10::IValue> results) override;

 private:
  struct Stand {  // a fake that replaces a real tensor
    at::Tensor real, fake;
  };
  // The origin of autograd steps whose sequence number is below `sequence` and not below the previous entry's.
  struct OriginUpTo {
    std::uint64_t sequence = 0;
    std::shared_ptr<const graph::Origin> origin;
  };

  graph::Node* first_step() const;  // null: the graph has only placeholders
  graph::Argument argument_of(const at::Tensor& fake) const;
  graph::Node& add_call(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments);
  void note_writes(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments);
  void bind_result(graph::Node& node, const c10::IValue& result);
  void bind_tensor(graph::Node& node, const at::Tensor& fake);
  void bind_layout(graph::Node& node, const at::Tensor& fake);
  void bind_items(graph::Node& node, const std::vector<c10::IValue>& items);
  graph::Node& attribute_of(const at::Tensor& real);
  std::shared_ptr<const graph::Origin> origin_of_backward() const;

  const graph::GraphModule& part_;
  graph::GraphModule& joint_;
  ExpressionNodes expressions_;
  std::unordered_map<std::uint64_t, graph::Node*> nodes_;       // by fake_id
  std::unordered_map<std::uint64_t, graph::Argument> numbers_;  // by fake_id: the values of wrapped numbers
  std::unordered_map<const c10::TensorImpl*, Stand> stands_;    // by real tensor
  std::unordered_set<const c10::StorageImpl*> written_;
  std::vector<OriginUpTo> origins_;         // ascending by sequence number
  const graph::Node* part_node_ = nullptr;  // the node that is running; null: none
  graph::Node* last_call_ = nullptr;        // the last call recorded while that node runs
  NumbersOfGraph numbers_of_graph_;
  ZeroTensors zeros_;
  std::unordered_set<const graph::Node*> without_grad_mode_;
};

}  // namespace rehearse::capture
