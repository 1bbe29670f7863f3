// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include <ATen/core/ivalue.h>

#include <rehearse_internal/capture/joint_graph.h>

#include "capture/joint/joint_inputs.h"
#include "capture/joint/joint_recorder.h"
#include "capture/joint/view_replay.h"

namespace rehearse::capture {

// Sorts the results of a captured graph into values and other results. Operators compute the values, below autograd.
// Each other result is an input itself, or a view that is made under autograd from inputs and values.
class JointOutputs {
 public:
  // `results`: what the captured graph returned for `inputs`. Throws GraphError for results that no graph can return,
  // and SharedInputChanges.
  JointOutputs(JointRecorder& recorder, const JointInputs& inputs, const std::vector<c10::IValue>& results);

  const graph::List& values() const noexcept { return values_; }
  // One tensor for each value; undefined if the value is no fake tensor.
  const std::vector<at::Tensor>& tensors() const noexcept { return tensors_; }
  const std::vector<GraphOutput>& outputs() const noexcept { return outputs_; }
  const std::vector<ChangedInput>& changed_inputs() const noexcept { return changed_inputs_; }
  const std::shared_ptr<graph::GraphModule>& views() const noexcept { return views_; }

 private:
  bool is_differentiated() const;
  void add_changed_inputs();
  void refuse_shared_change(std::size_t input) const;
  void refuse_other_form(std::size_t input) const;
  void refuse_lazy_bits(std::size_t input) const;
  void refuse_overlap(std::size_t input) const;
  bool has_other_form(std::size_t input) const;
  void refuse_view_of_other_form(std::size_t output, const at::Tensor& view) const;
  // Throws if the view or its base has a history. Call it for a view that was made before its base was changed in
  // place.
  void refuse_stale_view(std::size_t output, const at::Tensor& view) const;
  // Throws if the result lies in the memory of a changed input. Call it for a result that is no view of that input.
  void refuse_hidden_alias(std::size_t output, const at::Tensor& result) const;
  void count_results_of_bases(const std::vector<c10::IValue>& results);
  bool is_view_of_visible(const at::Tensor& tensor) const;
  void add_result(std::size_t output, const c10::IValue& result);
  void add_views(const std::vector<c10::IValue>& results);
  std::size_t value_of(const at::Tensor& tensor);
  std::size_t constant_of(std::size_t output, const c10::IValue& value);

  JointRecorder& recorder_;
  const JointInputs& inputs_;
  graph::List values_;
  std::vector<at::Tensor> tensors_;
  std::vector<GraphOutput> outputs_;
  std::vector<ChangedInput> changed_inputs_;
  std::shared_ptr<graph::GraphModule> views_;
  std::map<std::uint64_t, std::size_t> inputs_by_id_, values_by_id_, results_of_base_;  // by fake_id
};

}  // namespace rehearse::capture
