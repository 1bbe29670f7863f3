// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <ATen/core/ivalue.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <rehearse_internal/capture/compiled_history.h>
#include <rehearse_internal/libtorch/nodes.h>

#include "compile/aot/aot_program.h"

namespace rehearse::compiler {

// The autograd node of one call of an AotProgram. Its edges lead to the program's inputs, in order. An input has no
// edge if it is no tensor, if it requires no gradient, or if no result is computed from it.
class AotNode : public libtorch::OwningNode<capture::CompiledHistory> {
 public:
  AotNode(std::shared_ptr<const AotProgram> program, torch::autograd::edge_list&& edges);

  // `results` of the forward: `values` values, then the saved values. Makes this node the history of the differentiable
  // values, and keeps the saved values with their versions.
  void record(std::vector<c10::IValue>& results, std::size_t values);

  std::string name() const override { return "CompiledBackward(" + program_->name() + ")"; }
  void release_variables() override;

 protected:
  // Runs the backward for these tangents. If only the first backward is available, undefined tangents count as zeros.
  // Gradients that depend on undefined tangents only are undefined, as in eager mode. Differentiating the gradients
  // again is an error.
  torch::autograd::variable_list apply(torch::autograd::variable_list&& tangents) override;
  void drop_members() noexcept override;

 private:
  void release_saved();
  std::vector<c10::IValue> unpack(const std::vector<std::size_t>& saved);
  torch::autograd::variable_list run(torch::autograd::variable_list&& tangents);

  std::shared_ptr<const AotProgram> program_;
  std::vector<torch::autograd::SavedVariable> tensors_;
  // Tensors saved for hooks, by position. They have no version check, because a hook sees their values at the time of
  // its backward.
  std::vector<at::Tensor> of_hooks_;
  std::vector<c10::IValue> numbers_;
  bool released_ = false;
};

// Replaces `view`, a result that is a view of a tensor inside the program, by another tensor object with the same
// memory, because callers cannot see the base. The two objects share the version counter, so a backward that saved
// either of them notices if the caller changes the result in place.
void forget_base(const at::Tensor& view, std::vector<c10::IValue>& results);

libtorch::PtrTo<AotNode> make_aot_node(std::shared_ptr<const AotProgram> program,
                                       const std::vector<c10::IValue>& inputs);

}  // namespace rehearse::compiler
