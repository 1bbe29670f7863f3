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

// The groups of a mesh of one or two dimensions. shards_of() and replicas_of() throw c10::ValueError for a mesh of more
// dimensions, and on a rank outside of the mesh.
c10::intrusive_ptr<c10d::ProcessGroup> shards_of(const DeviceMesh& mesh);
c10::intrusive_ptr<c10d::ProcessGroup> replicas_of(const DeviceMesh& mesh);  // null for a mesh of one dimension

// A unit of a sharded model.
struct ShardUnitInfo {
  std::string name;                     // the path of its module; empty: the root
  std::vector<std::string> parameters;  // names
  bool is_whole = false;                // its memory is allocated, on this rank and at this moment
};

// The part of FullyShardedDataParallel that does not depend on the module's type. Programs use
// FullyShardedDataParallel, which documents the functions of the same names.
class FsdpSession {
 public:
  using GroupPtr = c10::intrusive_ptr<c10d::ProcessGroup>;

  // `replicas`: with hybrid sharding, the ranks that hold the same shard; otherwise null.
  FsdpSession(std::shared_ptr<torch::nn::Module> module, GroupPtr group, GroupPtr replicas,
              FullyShardedOptions options);
  FsdpSession(const FsdpSession&) = delete;
  FsdpSession& operator=(const FsdpSession&) = delete;
  ~FsdpSession();

  // A forward in progress. Destroying it without finish() means that the forward has failed.
  class Forward {
   public:
    explicit Forward(FsdpSession& session);
    Forward(const Forward&) = delete;
    Forward& operator=(const Forward&) = delete;
    ~Forward();
    // Casts the tensors in `outputs` to output_dtype, and hooks onto them to notice when backward begins.
    void finish(std::vector<at::Tensor>& outputs);

   private:
    ShardedModel* model_;  // null: finished
  };

  // The dtype to which to cast floating-point inputs of the module; nullopt: none.
  std::optional<at::ScalarType> input_dtype() const noexcept;

  // Sets whether the gradients of forwards that begin from now on are reduced. Returns the previous setting.
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
  std::shared_ptr<ShardedModel> model_;  // shared, so that autograd hooks can check whether it still exists
};

}  // namespace rehearse::parallel
