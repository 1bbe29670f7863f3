// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/ivalue.h>

#include <rehearse/graph/interpreter.h>
#include <rehearse_internal/capture/joint_graph.h>
#include <rehearse_internal/capture/joint_partition.h>

#include "compile/aot/aot_backward.h"

namespace rehearse::compiler {

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
