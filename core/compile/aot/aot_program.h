// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <rehearse/graph/interpreter.h>
#include <rehearse_internal/capture/joint_graph.h>
#include <rehearse_internal/capture/joint_partition.h>

namespace rehearse::compiler {

// A backward recorded for tangents of certain forms (memory layouts, see capture::TangentForm).
struct AotBackward {
  graph::Interpreter graph;
  // Indices of the saved values (tensors, then numbers) that the backward takes as inputs. After them it takes a
  // tangent for each of `tangents`.
  std::vector<std::size_t> saved;
  std::vector<capture::Tangent> tangents;
  std::vector<std::vector<std::size_t>> gradient_tangents;  // see JointPartition
};

// A captured piece, kept so that it can be captured again.
struct CapturedPart {
  std::shared_ptr<graph::GraphModule> module;
  std::vector<c10::IValue> example_inputs;  // fakes that nothing else uses
  std::shared_ptr<shapes::ShapeEnv> shapes;
};

// The backwards of one piece. Eager autograd chooses operators by the memory layout of a gradient, and skips what
// depends only on undefined gradients; a recorded backward contains these choices. The first backward is recorded with
// the forward, for tangents with the layouts of the results. Others are recorded when tangents of other forms arrive.
class AotBackwards {
 public:
  // `part`: the captured piece. Without it, only the first backward is available.
  AotBackwards(const capture::JointGraph& joint, const capture::JointPartition& partition,
               std::optional<CapturedPart> part);

  // The backward for these tangents. `tangents` has one tensor for each tangent of the first backward, in its order; an
  // undefined tensor stands for a missing tangent. Records a backward if necessary, even inside a backward of autograd.
  // Returns the first backward if that is impossible, for example because the new backward needs a value that was not
  // saved, or because the piece is not captured in the same way again. The caller must then bring the tangents into the
  // forms that the first backward takes. Throws c10::Error instead if tangents are missing and the piece has captured
  // hooks.
  const AotBackward& for_tangents(const std::vector<at::Tensor>& tangents);
  const AotBackward& first() const noexcept { return *first_; }

  // True if autograd can reach this input from a result.
  bool has_path_to(std::size_t input) const;

  std::size_t recorded() const noexcept;  // including the first one

 private:
  std::unique_ptr<AotBackward> record(const std::vector<capture::Tangent>& tangents) const;
  bool has_same_forward(const capture::JointGraph& again) const;

  capture::JointGraph joint_;
  std::optional<CapturedPart> part_;
  std::vector<std::string> saved_names_;
  std::unique_ptr<AotBackward> first_;
  std::recursive_mutex mutex_;  // of `others_`; several threads may run backwards
  std::map<std::vector<capture::Tangent>, std::unique_ptr<AotBackward>> others_;  // null: cannot be recorded
};

// A piece that was split into a forward and a backward, ready to run as one step of autograd. When its backward ends,
// the leaves among its inputs get all their gradients. Calls and their autograd nodes share the program, and several
// fibers of one rank may run it at once.
class AotProgram : public std::enable_shared_from_this<AotProgram> {
 public:
  // `name`: name of the piece, such as "submod_1". `part`: the captured piece, for recording backwards for other
  // tangents. Throws GraphError like Interpreter.
  AotProgram(const capture::JointGraph& joint, const capture::JointPartition& partition, std::string name,
             std::optional<CapturedPart> part = std::nullopt);

  // Takes one input for each placeholder, and returns the results that eager autograd would return. Makes no autograd
  // node if grad mode is off, if no input requires a gradient, or if the piece has no backward.
  std::vector<c10::IValue> call(const std::vector<c10::IValue>& inputs) const;

  const std::string& name() const noexcept { return name_; }
  std::size_t saved_tensors() const noexcept { return saved_tensors_; }
  // True if captured hooks use this saved tensor.
  bool is_of_hook(std::size_t saved) const { return !of_hooks_.empty() && of_hooks_[saved]; }
  AotBackwards& backwards() const noexcept { return *backwards_; }  // only if there is a backward

  // Returns the gradient of each input of the piece. `inputs`: the saved values that `backward` takes, then its
  // tangents.
  std::vector<c10::IValue> run_backward(const AotBackward& backward, std::vector<c10::IValue> inputs) const;

 private:
  std::vector<c10::IValue> run_and_record(const std::vector<c10::IValue>& inputs) const;
  void copy_back(const std::vector<c10::IValue>& inputs, const std::vector<c10::IValue>& values) const;
  std::vector<c10::IValue> outputs_of(const std::vector<c10::IValue>& inputs, std::vector<c10::IValue> values) const;

  std::string name_, forward_span_, backward_span_;
  graph::Interpreter forward_;
  std::optional<graph::Interpreter> views_;
  std::vector<bool> of_hooks_;               // by position among the saved tensors; empty: none
  std::unique_ptr<AotBackwards> backwards_;  // null: nothing to differentiate
  std::size_t values_, saved_tensors_;
  std::vector<capture::GraphOutput> outputs_;
  std::vector<capture::ChangedInput> changed_inputs_;
};

}  // namespace rehearse::compiler
