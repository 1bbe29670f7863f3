// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/checkpoint/checkpoint_node.h"

#include <algorithm>
#include <utility>

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/variable.h>

#include <rehearse_internal/exec/check.h>
#include <rehearse_internal/operators/generator_state.h>

namespace rehearse::parallel {
namespace {

constexpr std::array kAutocastDevices = {at::kCPU, at::kCUDA};

namespace autograd = torch::autograd;

autograd::edge_list edges_of(const std::vector<CheckpointNode::Exit>& exits) {
  autograd::edge_list edges;
  edges.reserve(exits.size());
  for (const auto& exit : exits) edges.push_back(exit.edge);
  return edges;
}

std::string text_of(const autograd::Edge& edge) {
  const auto sizes = C10_AS_INTARRAYREF_SLOW(edge.function->input_metadata(edge.input_nr).shape_as_dim_vector());
  return fmt::format("{} of shape [{}]", edge.function->name(), fmt::join(sizes, ", "));
}

}  // namespace

void RunState::take() {
  for (auto& [device, state] : generators_) state = operators::generator_state(device);
  for (std::size_t i = 0; i < kAutocastDevices.size(); ++i) {
    const auto device = kAutocastDevices[i];
    autocast_[i] = {at::autocast::is_autocast_enabled(device), at::autocast::get_autocast_dtype(device)};
  }
  autocast_cache_ = at::autocast::is_autocast_cache_enabled();
}

RunState RunState::current(const std::vector<at::Tensor>& inputs) {
  RunState state;
  std::vector<at::Device> devices = {at::kCPU};
  for (const at::Tensor& input : inputs) {
    if (!input.defined() || input.is_meta()) continue;  // Meta has no generator
    if (std::find(devices.begin(), devices.end(), input.device()) == devices.end()) devices.push_back(input.device());
  }
  for (const at::Device& device : devices) state.generators_.emplace_back(device, at::Tensor());
  state.take();
  return state;
}

RunState RunState::current_like_this() const {
  RunState state = *this;
  state.take();
  return state;
}

void RunState::restore() const {
  for (const auto& [device, state] : generators_) operators::set_generator_state(state, device);
  for (std::size_t i = 0; i < kAutocastDevices.size(); ++i) {
    at::autocast::set_autocast_enabled(kAutocastDevices[i], autocast_[i].enabled);
    at::autocast::set_autocast_dtype(kAutocastDevices[i], autocast_[i].dtype);
  }
  at::autocast::set_autocast_cache_enabled(autocast_cache_);
}

RunStateScope::RunStateScope(const RunState& state) : before_(state.current_like_this()) {
  state.restore();
  at::autocast::set_autocast_cache_enabled(false);
}

NoAutocastCache::NoAutocastCache() : before_(at::autocast::is_autocast_cache_enabled()) {
  at::autocast::set_autocast_cache_enabled(false);
}

NoAutocastCache::~NoAutocastCache() { at::autocast::set_autocast_cache_enabled(before_); }

CheckpointInputs::CheckpointInputs(const std::vector<at::Tensor>& given) {
  leaves.reserve(given.size());
  for (const at::Tensor& tensor : given) {
    leaves.push_back(tensor.defined() ? tensor.detach().requires_grad_(tensor.requires_grad()) : at::Tensor());
  }
}

std::optional<std::size_t> CheckpointInputs::find(const autograd::Edge& exit) const {
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (!leaves[i].defined() || !leaves[i].requires_grad()) continue;
    if (autograd::impl::gradient_edge(leaves[i]) == exit) return i;
  }
  return std::nullopt;
}

std::vector<std::size_t> differentiable(const std::vector<at::Tensor>& results) {
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i].defined() || !results[i].requires_grad()) continue;
    if (autograd::impl::gradient_edge(results[i]).is_valid()) indices.push_back(i);
  }
  return indices;
}

CheckpointNode::CheckpointNode(CheckpointCode code, const std::vector<at::Tensor>& inputs, RunState state,
                               std::vector<Exit> exits)
    : OwningNode(edges_of(exits)), code_(std::move(code)), state_(std::move(state)), exits_(std::move(exits)) {
  inputs_.reserve(inputs.size());
  for (const at::Tensor& input : inputs) inputs_.emplace_back(input, false);
}

void CheckpointNode::record(std::vector<at::Tensor>& results, std::vector<std::size_t> indices) {
  indices_ = std::move(indices);
  results_ = results.size();
  for (const std::size_t index : indices_) autograd::set_history(results[index], getptr());
}

void CheckpointNode::release_variables() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (autograd::SavedVariable& input : inputs_) input.reset_data();
  code_ = nullptr;
}

void CheckpointNode::drop_members() noexcept {
  code_ = nullptr;
  inputs_.clear();
  exits_.clear();
}

std::vector<at::Tensor> CheckpointNode::unpack() {
  TORCH_CHECK(code_ != nullptr, autograd::ERR_BACKWARD_TWICE);
  std::vector<at::Tensor> inputs;
  inputs.reserve(inputs_.size());
  for (const autograd::SavedVariable& input : inputs_) inputs.push_back(input.unpack(getptr()));
  return inputs;
}

std::vector<at::Tensor> CheckpointNode::run_again(const CheckpointInputs& inputs) {
  std::vector<at::Tensor> results = code_(inputs.leaves, nullptr);
  if (results.size() != results_ || differentiable(results) != indices_) {
    throw CheckpointError(
        fmt::format("rehearse::checkpoint(): the code returned {} tensors, of which {} require grad, but {}, of which "
                    "{} require grad, when the backward ran it again. It must do the same both times",
                    results_, indices_.size(), results.size(), differentiable(results).size()));
  }
  return results;
}

void CheckpointNode::require_same(const LocalGraph& graph, const CheckpointInputs& inputs) const {
  const auto& exits = graph.exits();
  for (std::size_t i = 0; i < std::max(exits.size(), exits_.size()); ++i) {
    if (i < exits.size() && i < exits_.size()) {
      const auto input = inputs.find(exits[i]);
      if (input ? input == exits_[i].input : !exits_[i].input && exits[i] == exits_[i].edge) continue;
    }
    throw CheckpointError(fmt::format(
        "rehearse::checkpoint(): when the backward ran the code again, it used other tensors that require grad than "
        "before: {} instead of {}. It must do the same both times",
        i < exits.size() ? text_of(exits[i]) : "nothing", i < exits_.size() ? text_of(exits_[i].edge) : "nothing"));
  }
}

autograd::variable_list CheckpointNode::run_backward(autograd::variable_list&& gradients,
                                                     const std::vector<bool>& wanted) {
  const CheckpointInputs inputs(unpack());
  const at::AutoGradMode with_history(true);
  const auto begin = LocalGraph::now();
  std::vector<at::Tensor> results;
  {
    const RunStateScope as_before(state_);
    results = run_again(inputs);
  }
  std::vector<at::Tensor> with_gradients;
  for (const std::size_t index : indices_) with_gradients.push_back(std::move(results[index]));
  results.clear();
  LocalGraph graph(with_gradients, begin);
  with_gradients.clear();
  require_same(graph, inputs);
  return graph.run_backward(std::move(gradients), wanted);
}

autograd::variable_list CheckpointNode::apply(autograd::variable_list&& gradients) {
  REHEARSE_CHECK(gradients.size() == indices_.size(), gradients.size(), indices_.size());
  if (at::GradMode::is_enabled()) {
    throw CheckpointError(
        "rehearse::checkpoint(): its gradient cannot be differentiated again (create_graph). Leave the code out of "
        "checkpoint()");
  }
  if (std::none_of(gradients.begin(), gradients.end(), [](const at::Tensor& each) { return each.defined(); })) {
    return autograd::variable_list(num_outputs());
  }
  std::vector<bool> wanted;
  for (std::size_t i = 0; i < exits_.size(); ++i) wanted.push_back(task_should_compute_output(i));
  return run_backward(std::move(gradients), wanted);
}

}  // namespace rehearse::parallel
