// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <rehearse/checks/model_state.h>
#include <rehearse/parallel/fsdp_options.h>
#include <rehearse/parallel/shard_state.h>

namespace torch::nn {
class Module;
}

namespace rehearse {
class DeviceMesh;
}

namespace rehearse::parallel {

class ShardedModel;

// The groups of a mesh of one or two dimensions. Throws c10::ValueError for another one, and on a rank outside of it.
c10::intrusive_ptr<c10d::ProcessGroup> shards_of(const DeviceMesh& mesh);
c10::intrusive_ptr<c10d::ProcessGroup> replicas_of(const DeviceMesh& mesh);  // null: one dimension

// A unit of a sharded model.
struct ShardUnitInfo {
  std::string name;                     // the path of its module; empty: the root
  std::vector<std::string> parameters;  // names
  bool is_whole = false;                // its memory is there, on this rank and now
};

// The part of FullyShardedDataParallel that does not depend on the module's type. Use that; it documents what the calls
// of the same name do.
class FsdpSession {
 public:
  using GroupPtr = c10::intrusive_ptr<c10d::ProcessGroup>;

  // `replicas`: in hybrid sharding, the ranks that have the same shard; null otherwise.
  FsdpSession(std::shared_ptr<torch::nn::Module> module, GroupPtr group, GroupPtr replicas,
              FullyShardedOptions options);
  FsdpSession(const FsdpSession&) = delete;
  FsdpSession& operator=(const FsdpSession&) = delete;
  ~FsdpSession();

  // A forward that is under way. Its end without finish() means that it has failed.
  class Forward {
   public:
    explicit Forward(FsdpSession& session);
    Forward(const Forward&) = delete;
    Forward& operator=(const Forward&) = delete;
    ~Forward();
    // Puts tensors in output_dtype into `outputs`, and learns from them when backward begins.
    void finish(std::vector<at::Tensor>& outputs);

   private:
    ShardedModel* model_;  // null: finished
  };

  // The dtype that floating-point inputs of the module are to have. None: whatever they have.
  std::optional<at::ScalarType> input_dtype() const noexcept;

  // Are gradients of this and the following iterations reduced? Returns what was set before.
  bool set_gradient_sync(bool on) noexcept;

  void zero_grad();
  at::Tensor clip_grad_norm(double max_norm, double norm_type);
  NamedTensors named_parameters() const;
  std::vector<ShardUnitInfo> units() const;

  checks::ModelState checked_state() const;

  NamedTensors full_state_dict() const;
  void load_full_state_dict(const NamedTensors& state);
  std::vector<SavedRows> sharded_state_dict() const;
  void load_sharded_state_dict(const std::vector<SavedRows>& state);
  at::Tensor gather_like(const std::string& parameter, const at::Tensor& rows) const;
  at::Tensor rows_like(const std::string& parameter, const at::Tensor& whole) const;

 private:
  std::shared_ptr<ShardedModel> model_;  // hooks of autograd look whether it is still there
};

}  // namespace rehearse::parallel
