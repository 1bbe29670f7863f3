// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/parallel/checkpoint.h>

#include <cstdint>
#include <memory>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/variable.h>

#include <rehearse_internal/libtorch/nodes.h>
#include <rehearse_internal/operators/capture_mode.h>
#include <rehearse_internal/parallel/captured_checkpoint.h>

#include "parallel/checkpoint/checkpoint_node.h"

namespace rehearse::parallel {
namespace {

namespace autograd = torch::autograd;

std::vector<std::int64_t> versions_of(const std::vector<at::Tensor>& tensors) {
  std::vector<std::int64_t> versions;
  for (const at::Tensor& tensor : tensors) versions.push_back(tensor.defined() ? tensor._version() : 0);
  return versions;
}

void require_unchanged(const std::vector<at::Tensor>& inputs, const std::vector<std::int64_t>& versions) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined() || inputs[i]._version() == versions[i]) continue;
    throw CheckpointError(
        fmt::format("rehearse::checkpoint(): the code changes its input tensor {} in place, so its backward would run "
                    "it again on the changed values. Change a clone of it",
                    i));
  }
}

void require_no_tangents(const std::vector<at::Tensor>& inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined() || !inputs[i]._fw_grad(0).defined()) continue;
    throw CheckpointError(fmt::format(
        "rehearse::checkpoint(): its input tensor {} has a tangent (forward-mode), which its code would not see. Leave "
        "the code out of checkpoint()",
        i));
  }
}

// A tensor that shares memory and version with `tensor`, but has no history.
at::Tensor without_history(const at::Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  c10::TensorImpl* const impl = tensor.unsafeGetTensorImpl();
  return at::Tensor(impl->shallow_copy_and_detach(impl->version_counter(), true));
}

std::vector<CheckpointNode::Exit> exits_of(const LocalGraph& graph, const CheckpointInputs& inputs,
                                           const std::vector<at::Tensor>& given) {
  std::vector<CheckpointNode::Exit> exits;
  for (const autograd::Edge& edge : graph.exits()) {
    const auto input = inputs.find(edge);
    exits.push_back({input, input ? autograd::impl::gradient_edge(given[*input]) : edge});
  }
  return exits;
}

// Hooks that the code registers on an input are hooks of the tensor outside, as they are without a checkpoint.
void hand_over_hooks(const CheckpointInputs& inputs, const std::vector<at::Tensor>& given) {
  for (std::size_t i = 0; i < given.size(); ++i) {
    const auto* const meta = autograd::impl::get_autograd_meta(inputs.leaves[i]);
    if (meta == nullptr || meta->cpp_hooks_list_ == nullptr) continue;
    for (const auto& hook : *meta->cpp_hooks_list_) {
      if (hook) given[i].register_hook([hook](const at::Tensor& gradient) { return at::Tensor(hook(gradient)); });
    }
  }
}

// If the program kept a tensor that the code has made, the tensor's history would end at the checkpoint's own leaves,
// and its gradient would be lost.
void require_none_kept(const LocalGraph& graph, const CheckpointInputs& inputs) {
  const auto kept = graph.find_kept([&](const autograd::Edge& exit) { return inputs.find(exit).has_value(); });
  if (kept == nullptr) return;
  throw CheckpointError(fmt::format(
      "rehearse::checkpoint(): the code keeps a tensor that it has made, with its history ({}). Let it return the "
      "tensor, or keep it detached",
      kept->name()));
}

}  // namespace

std::vector<at::Tensor> run_checkpoint(CheckpointCode code, const std::vector<at::Tensor>& given, void* result) {
  if (operators::BodyRecorder* const bodies = operators::CaptureMode::current_bodies()) {
    const NoAutocastCache no_cache;
    return bodies->record("tag_activation_checkpoint", given,
                          [&](const std::vector<at::Tensor>& inputs) { return code(inputs, result); });
  }
  const operators::CaptureMode* const mode = operators::CaptureMode::current();
  if (mode != nullptr && !mode->has_ended()) return code(given, result);
  return run_captured_checkpoint(std::move(code), given, result);
}

std::vector<at::Tensor> run_captured_checkpoint(CheckpointCode code, const std::vector<at::Tensor>& given,
                                                void* result) {
  if (!at::GradMode::is_enabled()) return code(given, result);
  require_no_tangents(given);
  CheckpointInputs inputs(given);
  const RunState state = RunState::current(given);
  const auto versions = versions_of(given);
  const auto begin = LocalGraph::now();
  std::vector<at::Tensor> results;
  {
    const NoAutocastCache no_cache;
    results = code(inputs.leaves, result);
  }
  require_unchanged(given, versions);
  hand_over_hooks(inputs, given);
  const std::vector<std::size_t> indices = differentiable(results);
  if (indices.empty()) return results;

  std::vector<at::Tensor> with_gradients;
  for (const std::size_t index : indices) with_gradients.push_back(results[index]);
  LocalGraph graph(with_gradients, begin);
  with_gradients.clear();
  for (at::Tensor& each : results) each = without_history(each);
  graph.release();
  require_none_kept(graph, inputs);
  graph.leave_out_kept();
  const auto node = libtorch::make_node<CheckpointNode>(std::move(code), given, state, exits_of(graph, inputs, given));
  node->record(results, indices);
  return results;
}

}  // namespace rehearse::parallel
