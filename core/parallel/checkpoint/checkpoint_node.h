// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <rehearse/parallel/checkpoint.h>
#include <rehearse_internal/libtorch/nodes.h>

#include "parallel/checkpoint/local_graph.h"

namespace rehearse::parallel {

// The state of the calling fiber that a second run of the same code needs: the default generators of the CPU and of the
// devices of `inputs`, and autocast.
class RunState {
 public:
  static RunState current(const std::vector<at::Tensor>& inputs);

  // Returns the current state, with the generators of the same devices as in this state.
  RunState current_like_this() const;

  void restore() const;

 private:
  struct Autocast {
    bool enabled = false;
    c10::ScalarType dtype = c10::ScalarType::Undefined;
  };

  void take();

  std::vector<std::pair<c10::Device, at::Tensor>> generators_;  // the states of their default generators
  std::array<Autocast, 2> autocast_;                            // for the CPU, for CUDA
  bool autocast_cache_ = true;
};

// While it lives, the calling fiber has the given state, and autocast's cache is off, because the two runs would find
// different contents in the cache.
class RunStateScope {
 public:
  explicit RunStateScope(const RunState& state);
  RunStateScope(const RunStateScope&) = delete;
  RunStateScope& operator=(const RunStateScope&) = delete;
  ~RunStateScope() { before_.restore(); }

 private:
  const RunState before_;
};

class NoAutocastCache {
 public:
  NoAutocastCache();
  NoAutocastCache(const NoAutocastCache&) = delete;
  NoAutocastCache& operator=(const NoAutocastCache&) = delete;
  ~NoAutocastCache();

 private:
  const bool before_;
};

// The leaves (in the sense of autograd) that replace a checkpoint's inputs while its code runs. Each leaf shares memory
// and version with the caller's tensor.
struct CheckpointInputs {
  explicit CheckpointInputs(const std::vector<at::Tensor>& given);

  // The input whose gradient goes through this edge. nullopt: the edge leads to a tensor that is no input.
  std::optional<std::size_t> find(const torch::autograd::Edge& exit) const;

  std::vector<at::Tensor> leaves;
};

// The indices of the results that require grad. Leaves out views that were made without grad mode. Such views report
// that they require grad, but get no gradient.
std::vector<std::size_t> differentiable(const std::vector<at::Tensor>& results);

// The autograd node of one checkpoint. Its backward runs the code again.
class CheckpointNode : public libtorch::OwningNode<torch::autograd::Node> {
 public:
  // An edge that leaves the code's graph: to an input, or to another tensor from outside.
  struct Exit {
    std::optional<std::size_t> input;
    torch::autograd::Edge edge;  // where its gradient goes
  };

  CheckpointNode(CheckpointCode code, const std::vector<at::Tensor>& inputs, RunState state, std::vector<Exit> exits);

  // Makes this node the history of the results at `indices`. The results must have no history.
  void record(std::vector<at::Tensor>& results, std::vector<std::size_t> indices);

  std::string name() const override { return "CheckpointBackward"; }
  void release_variables() override;

 protected:
  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override;
  void drop_members() noexcept override;

 private:
  std::vector<at::Tensor> unpack();
  std::vector<at::Tensor> run_again(const CheckpointInputs& inputs);
  void require_same(const LocalGraph& graph, const CheckpointInputs& inputs) const;
  torch::autograd::variable_list run_backward(torch::autograd::variable_list&& gradients,
                                              const std::vector<bool>& wanted);

  CheckpointCode code_;
  std::vector<torch::autograd::SavedVariable> inputs_;
  const RunState state_;
  std::vector<Exit> exits_;
  std::vector<std::size_t> indices_;
  std::size_t results_ = 0;
};

}  // namespace rehearse::parallel
