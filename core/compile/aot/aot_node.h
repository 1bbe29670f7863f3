// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <ATen/core/ivalue.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <rehearse_internal/capture/compiled_history.h>

#include "compile/aot/aot_program.h"

namespace rehearse::compiler {

// The step of autograd that a call of an AotProgram leaves behind. Its edges lead to the program's inputs, in order;
// those that are no tensors, or require no gradient, have none.
class AotNode : public capture::CompiledHistory {
 public:
  AotNode(std::shared_ptr<const AotProgram> program, torch::autograd::edge_list&& edges);

  // `results` of the forward: `values` values, then what is saved. Makes this node the history of the differentiable
  // values and keeps what is saved, with its versions.
  void record(std::vector<c10::IValue>& results, std::size_t values);

  std::string name() const override { return "CompiledBackward(" + program_->name() + ")"; }
  void release_variables() override;

 protected:
  // Runs the backward for these tangents. Where there is only the first one, undefined tangents count as zeros, but
  // gradients that depend on such tangents alone are undefined, as in eager. The gradients cannot be differentiated
  // again: who tries gets an error.
  torch::autograd::variable_list apply(torch::autograd::variable_list&& tangents) override;

 private:
  void release_saved();
  std::vector<c10::IValue> unpack(const std::vector<std::size_t>& saved);
  torch::autograd::variable_list run(torch::autograd::variable_list&& tangents);

  std::shared_ptr<const AotProgram> program_;
  std::vector<torch::autograd::SavedVariable> tensors_;
  std::vector<at::Tensor> of_hooks_;  // by place, in the stead of those: a hook sees how they are in its backward
  std::vector<c10::IValue> numbers_;
  bool released_ = false;
};

// Puts another tensor of the same memory in the place of `view`, a result that is a view of something inside the
// program, and so of nothing that its caller can see. They share the version: a backward that has saved either finds
// out if the caller changes the result in place.
void forget_base(const at::Tensor& view, std::vector<c10::IValue>& results);

// A node for one call with these inputs.
std::shared_ptr<AotNode> make_aot_node(std::shared_ptr<const AotProgram> program,
                                       const std::vector<c10::IValue>& inputs);

}  // namespace rehearse::compiler
