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

// Forward and backward of a captured graph as one graph below autograd: what PyTorch calls the joint graph
// (torch/_functorch/_aot_autograd), but without functionalization: in-place operators stay, and order counts.
namespace rehearse::capture {

// Where an output of the captured graph comes from once its operators have run below autograd.
struct PartOutput {
  enum class Kind {
    Value,  // values[index], a tensor of its own or a number
    Input,  // input #index itself
    View,   // output #index of JointGraph::views
  };
  Kind kind = Kind::Value;
  std::size_t index = 0;
};

// An input that is part of the derivative and changed in place: the forward works on a copy of it, and its new
// contents, values[value], are copied into the caller's tensor; under autograd where it was changed under that.
struct ChangedInput {
  std::size_t input = 0;
  std::size_t value = 0;
  bool under_autograd = true;
};

// How a tensor lies in memory: its dimensions from the outermost to the innermost, without gaps, but for those that are
// expanded (stride 0).
struct TangentForm {
  std::vector<std::int64_t> dim_order;
  std::vector<bool> expanded = {};  // by dimension; empty: none is
  auto operator<=>(const TangentForm&) const = default;
};

// The gradient of values[value], an input of the backward. `form`: what operators were chosen for (a view, not a copy).
struct Tangent {
  std::size_t value = 0;
  TangentForm form;
  auto operator<=>(const Tangent&) const = default;
};

struct JointGraph {
  // Placeholders: one for each input of the captured graph, then one for each tangent. Output: a list of the values,
  // then, where there are tangents, the gradient of each input, none where it has none.
  std::shared_ptr<graph::GraphModule> module;
  std::size_t inputs = 0;
  std::size_t values = 0;
  std::vector<Tangent> tangents = {};  // none: nothing to differentiate
  // For each input the tangents (by position) from which autograd comes to it, whether or not its gradient's value
  // depends on theirs: that of sgn() is zeros for any tangent, and undefined without one. Empty without tangents.
  std::vector<std::vector<std::size_t>> leading_tangents = {};
  // The first node of the backward: all before it, but for tangents, is the forward. Null without a backward.
  const graph::Node* backward_begin = nullptr;

  std::vector<PartOutput> outputs = {};  // of the captured graph, in order
  // Views of inputs and values that the captured graph returns, made under autograd after its operators have run.
  // Placeholders: inputs, then values. Null: there are none.
  std::shared_ptr<graph::GraphModule> views = nullptr;
  std::vector<ChangedInput> changed_inputs = {};
};

// An input that is differentiated is changed in place, and shares its memory with another one or with a result that is
// no view of it, or gets another form.
class SharedInputChanges : public graph::GraphError {
 public:
  using GraphError::GraphError;
};

// Autograd cannot differentiate the part on fakes: an operator without a derivative, or what LibTorch does only where
// it goes back to all leaves.
class NoRecordedBackward : public graph::GraphError {
 public:
  using GraphError::GraphError;
};

// The joint graph of `part`, by running it once on fakes. `example_inputs`: one for each placeholder, fake tensors and
// symbolic integers of `shapes`; they are read and not changed. What requires a gradient is differentiated while
// gradient mode is on. Nothing is computed or drawn, no real tensor changes, no hook fires. Does not block.
//
// `tangents`: those that the backward is to be recorded for; others count as undefined. Null: one for each value that
// requires a gradient, lying as that value does.
//
// Two inputs that share memory, one of which is differentiated and changed in place, are refused with
// SharedInputChanges, what autograd refuses with NoRecordedBackward, and generators among arguments with GraphError.
// Errors of operators leave as they are, with the node named.
JointGraph capture_joint(const std::shared_ptr<graph::GraphModule>& part,
                         const std::vector<c10::IValue>& example_inputs,
                         const std::shared_ptr<shapes::ShapeEnv>& shapes,
                         const std::vector<Tangent>* tangents = nullptr);

}  // namespace rehearse::capture
