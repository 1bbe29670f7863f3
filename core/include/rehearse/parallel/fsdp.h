// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <rehearse/parallel/cast_inputs.h>
#include <rehearse/parallel/device_mesh.h>
#include <rehearse/parallel/fsdp_session.h>
#include <rehearse/parallel/module_traits.h>
#include <rehearse/parallel/no_sync_guard.h>
#include <rehearse/parallel/output_tensors.h>

namespace torch::nn {
class Module;
}

namespace rehearse {

// Data-parallel training in which each rank keeps only its rows of every parameter, gradient and optimizer state:
// PyTorch's fully_shard (FSDP2) for C++.
//
//   rehearse::FullyShardedDataParallel fsdp(net, ctx.group(), {.units = rehearse::UnitPolicy::of_type<BlockImpl>()});
//   torch::optim::AdamW optimizer(fsdp.parameters(), 1e-3);  // shards
//   ...
//   fsdp.zero_grad();
//   loss_of(fsdp.forward(x)).backward();
//   fsdp.clip_grad_norm_(1.0);
//   optimizer.step();
//
// The module keeps its tensors, and you need not change it. Their memory exists only while code uses them, in forward
// and in backward: the first operator that gets a parameter of a unit waits for the unit's all-gather, whoever calls
// the operator. When backward has all gradients of a unit, a reduce-scatter adds their mean to the gradients of the
// shards.
//
// `Net` is a module holder or a std::shared_ptr to a module; include the headers of your modules. `group` is any
// c10d::ProcessGroup or a rehearse::Group. docs/FSDP.md has the memory formula and the differences from PyTorch.
//
// The collectives, in the order in which they appear in the group:
//   construction   a check that all ranks have the same parameters; rank 0's values; without init_sync neither
//   forward        an all-gather for each unit
//   backward       an all-gather for each unit that forward has freed, one ahead of the computation, and a
//                  reduce-scatter for each unit with gradients
// In a group of one rank there are none.
//
// Blocking: the constructor, forward() and backward() wait for the other ranks.
// Threads: as a module: one thread (one fiber) at a time, and only the one that made it.
// Ownership: shares the module and the group. The module's parameters lose their memory for good, even after this
// object is destroyed. Neither copied nor moved.
// Errors: c10::ValueError for a module that cannot be sharded; c10::Error, which names parameter and unit, for code
// that uses a parameter without memory, or has changed a parameter; c10::Error for a module that has other parameters
// than at construction; errors of the group's collectives. After an error in backward, call zero_grad() to start
// afresh.
template <class Net>
class FullyShardedDataParallel {
 public:
  using Module = typename parallel::ModuleTraits<Net>::Module;

  FullyShardedDataParallel(Net net, const c10::intrusive_ptr<c10d::ProcessGroup>& group,
                           FullyShardedOptions options = {})
      : net_(std::move(net)),
        output_dtype_(options.mixed_precision ? options.mixed_precision->output_dtype : std::nullopt),
        session_(parallel::ModuleTraits<Net>::pointer(net_), group, nullptr, std::move(options)) {
    static_assert(std::is_base_of_v<torch::nn::Module, Module>,
                  "Net must be a module holder or a std::shared_ptr to a torch::nn::Module");
  }
  // Shards over a mesh. With one dimension, it shards as over the group of that dimension. With two dimensions, it does
  // hybrid sharding, PyTorch's HSDP. The ranks of a line of the second dimension share out the rows, one shard each.
  // The ranks of a line of the first dimension hold the same shard. An additional all-reduce sums its gradients.
  FullyShardedDataParallel(Net net, const DeviceMesh& mesh, FullyShardedOptions options = {})
      : net_(std::move(net)),
        output_dtype_(options.mixed_precision ? options.mixed_precision->output_dtype : std::nullopt),
        session_(parallel::ModuleTraits<Net>::pointer(net_), parallel::shards_of(mesh), parallel::replicas_of(mesh),
                 std::move(options)) {}
  FullyShardedDataParallel(const FullyShardedDataParallel&) = delete;
  FullyShardedDataParallel& operator=(const FullyShardedDataParallel&) = delete;

  // The module's forward(). Returns its output unchanged, except for mixed_precision's dtypes.
  template <class... Args>
  auto forward(Args&&... args) {
    return forward_with([this]<class... Each>(Each&&... each) { return module().forward(std::forward<Each>(each)...); },
                        std::forward<Args>(args)...);
  }

  // forward() that calls `body` in place of the module's forward: for code that also uses the module's parameters
  // itself.
  template <class Body, class... Args>
  auto forward_with(Body&& body, Args&&... args) {
    parallel::FsdpSession::Forward forward(session_);
    const auto dtype = session_.input_dtype();
    if (!dtype) return run(forward, body, std::forward<Args>(args)...);
    return parallel::with_cast_inputs(
        *dtype, [&]<class... Cast>(Cast&&... cast) { return run(forward, body, std::forward<Cast>(cast)...); },
        std::forward<Args>(args)...);
  }

  template <class... Args>
  auto operator()(Args&&... args) {
    return forward(std::forward<Args>(args)...);
  }

  // Clears the gradients of parameters(), and the whole gradients that backward has left on this rank inside
  // no_sync().
  void zero_grad() { session_.zero_grad(); }

  // While the returned guard lives, gradients stay on this rank, whole, and accumulate. The first backward of a forward
  // made after the guard's life reduces the accumulated sum. What counts is where forward runs, not where its backward
  // runs.
  [[nodiscard]] parallel::NoSyncGuard<parallel::FsdpSession> no_sync() { return parallel::NoSyncGuard(session_); }

  // Scales the gradients of parameters() so that the norm of the whole model's gradients is at most `max_norm`, and
  // returns the norm before that. All ranks must call it; blocks. An infinite `norm_type` means the largest absolute
  // value.
  at::Tensor clip_grad_norm_(double max_norm, double norm_type = 2.0) {
    return session_.clip_grad_norm(max_norm, norm_type);
  }

  Net& net() noexcept { return net_; }
  Module& module() const { return *parallel::ModuleTraits<Net>::pointer(net_); }
  Module* operator->() const { return &module(); }

  // This rank's shards, each once, frozen ones too, in order of modules: the argument for an optimizer. Ignored
  // parameters are among them, unsharded.
  std::vector<at::Tensor> parameters() const {
    std::vector<at::Tensor> tensors;
    for (auto& [name, tensor] : session_.named_parameters()) tensors.push_back(std::move(tensor));
    return tensors;
  }
  NamedTensors named_parameters() const { return session_.named_parameters(); }

  std::vector<parallel::ShardUnitInfo> units() const { return session_.units(); }

  // State for ctx.check_replicas(), check_gradients() and check_finite(), which accept this object.
  checks::ModelState checked_state() const { return session_.checked_state(); }

  // The whole model in new tensors: parameters in the dtype of the shards, and buffers, each under its first name. A
  // group of any size can load it. All ranks must call it, between steps; blocks.
  NamedTensors full_state_dict() const { return session_.full_state_dict(); }
  // Takes this rank's rows from the result of full_state_dict(). No communication. Throws c10::ValueError, and changes
  // nothing, if names are missing, unknown or given twice, or if sizes differ.
  void load_full_state_dict(const NamedTensors& state) { session_.load_full_state_dict(state); }

  // This rank's part of the state: copies of its shards, and the buffers. No communication.
  std::vector<SavedRows> sharded_state_dict() const { return session_.sharded_state_dict(); }
  // Takes this rank's rows from `state`: what all ranks of a group of any size have saved, concatenated into one list.
  // No communication. Throws c10::ValueError, and changes nothing, if names are missing or unknown, if sizes differ, or
  // if `state` lacks rows that this rank needs.
  void load_sharded_state_dict(const std::vector<SavedRows>& state) { session_.load_sharded_state_dict(state); }

  // For the state that an optimizer keeps per shard, such as averages. Such a tensor must be sharded like the
  // parameter. gather_like() joins the `rows` of all ranks and returns the whole tensor; all ranks must call it;
  // blocks. rows_like() returns this rank's rows of a whole tensor. Together they convert an optimizer's state to
  // another number of ranks.
  at::Tensor gather_like(const std::string& parameter, const at::Tensor& rows) const {
    return session_.gather_like(parameter, rows);
  }
  at::Tensor rows_like(const std::string& parameter, const at::Tensor& whole) const {
    return session_.rows_like(parameter, whole);
  }

 private:
  template <class Body, class... Args>
  auto run(parallel::FsdpSession::Forward& forward, Body& body, Args&&... args) {
    std::vector<at::Tensor> tensors;
    if constexpr (std::is_void_v<decltype(body(std::forward<Args>(args)...))>) {
      body(std::forward<Args>(args)...);
      forward.finish(tensors);
    } else {
      auto output = body(std::forward<Args>(args)...);
      parallel::for_each_tensor(output, [&](at::Tensor& tensor) { tensors.push_back(tensor); });
      forward.finish(tensors);
      std::size_t next = 0;
      if (output_dtype_) parallel::for_each_tensor(output, [&](at::Tensor& tensor) { tensor = tensors[next++]; });
      return output;
    }
  }

  Net net_;
  std::optional<at::ScalarType> output_dtype_;
  parallel::FsdpSession session_;
};

// A FullyShardedDataParallel on the heap, for code that passes it on. `over`: a group, or a mesh.
template <class Net, class Ranks>
std::unique_ptr<FullyShardedDataParallel<Net>> fully_shard(Net net, const Ranks& over,
                                                           FullyShardedOptions options = {}) {
  return std::make_unique<FullyShardedDataParallel<Net>>(std::move(net), over, std::move(options));
}

}  // namespace rehearse
