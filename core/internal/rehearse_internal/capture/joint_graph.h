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

// The source of an output of the captured graph, once the graph's operators have run below autograd.
struct GraphOutput {
  enum class Kind {
    Value,  // value #index of the joint graph: a tensor of its own, or no tensor
    Input,  // input #index itself
    View,   // output #index of JointGraph::views
  };
  Kind kind = Kind::Value;
  std::size_t index = 0;
};

// An input that is differentiated and changed in place. The forward works on a copy. After the forward, the caller must
// copy the new contents, value #`value` of the joint graph, into its own tensor. It must copy under autograd if the
// change itself happened under autograd.
struct ChangedInput {
  std::size_t input = 0;
  std::size_t value = 0;
  bool under_autograd = true;
};

// The memory layout of a tensor without gaps, by the order of its dimensions from the outermost to the innermost.
// Expanded dimensions have stride 0.
struct TangentForm {
  std::vector<std::int64_t> dim_order;
  std::vector<bool> expanded = {};  // by dimension; empty: none
  auto operator<=>(const TangentForm&) const = default;
};

// The gradient of value #`value` of the joint graph. This gradient is an input of the backward. `form`: the layout that
// this gradient must have. The recorded operators depend on it: for one layout autograd makes a view, for another a
// copy.
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
  // The first node of the backward. All nodes before it belong to the forward, except tangents and queries of their
  // sizes. Null if the backward has no nodes.
  const graph::Node* backward_begin = nullptr;

  std::vector<GraphOutput> outputs = {};  // the captured graph's outputs, in order
  // Makes the views of inputs and values that the captured graph returns. It runs under autograd, after the operators
  // of the forward. Placeholders: inputs, then values. Null if there are no views.
  std::shared_ptr<graph::GraphModule> views = nullptr;
  std::vector<ChangedInput> changed_inputs = {};
};

// Thrown for in-place changes that the joint graph could not reproduce. An input that is differentiated and changed in
// place must not share memory with another input or with a result that is no view of it. Its own elements must not
// share memory, it must keep its layout, and it must not be a lazy conjugate or negative. Neither a returned view nor
// its base may get another layout in place, and no returned view may be older than an in-place change of its base.
class SharedInputChanges : public graph::GraphError {
 public:
  using GraphError::GraphError;
};

// Thrown if autograd cannot differentiate the captured graph on fakes, for example because an operator has no
// derivative, or because LibTorch supports the operator only in backwards to all leaves.
class NoRecordedBackward : public graph::GraphError {
 public:
  using GraphError::GraphError;
};

// Makes the joint graph of `part`, a captured graph, by running it once on fakes. `example_inputs`: one for each
// placeholder, fake tensors and symbolic integers of `shapes`; the examples do not change. If grad mode is on,
// differentiates with respect to the inputs that require a gradient. Computes and draws nothing, changes no real
// tensor, and calls no hook of a real tensor. Does not block.
//
// `tangents`: the tangents for which to record the backward; others count as undefined. Null: one for each value that
// requires a gradient, with the value's order of dimensions. The new contents of an input that changed without autograd
// get no tangent.
//
// Throws SharedInputChanges and NoRecordedBackward (see there), and GraphError for wrong examples and for results that
// no graph can return. Errors of operators pass, with the node named.
JointGraph capture_joint(const std::shared_ptr<graph::GraphModule>& part,
                         const std::vector<c10::IValue>& example_inputs,
                         const std::shared_ptr<shapes::ShapeEnv>& shapes,
                         const std::vector<Tangent>* tangents = nullptr);

}  // namespace rehearse::capture
