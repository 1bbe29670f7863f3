// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/ivalue.h>

#include <rehearse/graph/errors.h>
#include <rehearse/graph/graph_module.h>

namespace rehearse::shapes {
class ShapeEnv;
}

// The forward and backward of a captured graph as one graph below autograd. PyTorch calls it the joint graph
// (torch/_functorch/_aot_autograd). Here it is not functionalised: in-place operators stay, and order matters.
namespace rehearse::capture {

// The origin of an output of the captured graph after its operators have run below autograd.
struct GraphOutput {
  enum class Kind {
    Value,  // values[index], a separate tensor or a number
    Input,  // input #index itself
    View,   // output #index of JointGraph::views
  };
  Kind kind = Kind::Value;
  std::size_t index = 0;
};

// An input that is differentiated and changed in place. The forward works on a copy. The new contents, values[value],
// are copied back into the caller's tensor, with autograd if the change itself happened with autograd.
struct ChangedInput {
  std::size_t input = 0;
  std::size_t value = 0;
  bool under_autograd = true;
};

// The memory layout of a tensor: its dimensions from the outermost to the innermost, without gaps. Expanded dimensions
// have stride 0.
struct TangentForm {
  std::vector<std::int64_t> dim_order;
  std::vector<bool> expanded = {};  // by dimension; empty: none
  auto operator<=>(const TangentForm&) const = default;
};

// The gradient of values[value], an input of the backward. `form`: the layout for which operators were chosen, such as
// a view instead of a copy.
struct Tangent {
  std::size_t value = 0;
  TangentForm form;
  auto operator<=>(const Tangent&) const = default;
};

struct JointGraph {
  // Placeholders: one for each input of the captured graph, then one for each tangent. Output: a list of the values,
  // and then, if there are tangents, the gradient of each input, or None for an input without one.
  std::shared_ptr<graph::GraphModule> module;
  std::size_t inputs = 0;
  std::size_t values = 0;
  std::vector<Tangent> tangents = {};  // empty: nothing to differentiate
  // For each input, the positions of the tangents from which autograd reaches it, whether or not the value of its
  // gradient depends on them. (The gradient of sgn() is zeros for any tangent, and undefined without one.) Empty
  // without tangents.
  std::vector<std::vector<std::size_t>> leading_tangents = {};
  // The first node of the backward. All nodes before it except tangents belong to the forward. Null without a backward.
  const graph::Node* backward_begin = nullptr;

  std::vector<GraphOutput> outputs = {};  // the captured graph's outputs, in order
  // Makes the views of inputs and values that the captured graph returns, under autograd, after its operators have run.
  // Placeholders: inputs, then values. Null if there are no views.
  std::shared_ptr<graph::GraphModule> views = nullptr;
  std::vector<ChangedInput> changed_inputs = {};
};

// Thrown if an input that is differentiated and changed in place shares memory with another input or with a result that
// is no view of it, or gets another layout.
class SharedInputChanges : public graph::GraphError {
 public:
  using GraphError::GraphError;
};

// Thrown if autograd cannot differentiate the captured graph on fakes: an operator has no derivative, or LibTorch
// supports it only in backwards to all leaves.
class NoRecordedBackward : public graph::GraphError {
 public:
  using GraphError::GraphError;
};

// Makes the joint graph of `part`, a captured graph, by running it once on fakes. `example_inputs`: one for each
// placeholder, fake tensors and symbolic integers of `shapes`, which do not change. Differentiates what requires a
// gradient if grad mode is on. Computes and draws nothing, changes no real tensor, and calls no hook. Does not block.
//
// `tangents`: the tangents for which to record the backward; others count as undefined. Null: one for each value that
// requires a gradient, with the layout of that value.
//
// Throws SharedInputChanges if two inputs share memory and one of them is differentiated and changed in place,
// NoRecordedBackward if autograd refuses the graph, and GraphError for generators among arguments. Errors of operators
// pass, with the node named.
JointGraph capture_joint(const std::shared_ptr<graph::GraphModule>& part,
                         const std::vector<c10::IValue>& example_inputs,
                         const std::shared_ptr<shapes::ShapeEnv>& shapes,
                         const std::vector<Tangent>* tangents = nullptr);

}  // namespace rehearse::capture
