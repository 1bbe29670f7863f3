// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <rehearse/parallel/active_ddp.h>
#include <rehearse/parallel/cast_inputs.h>
#include <rehearse/parallel/module_traits.h>
#include <rehearse/parallel/no_sync_guard.h>
#include <rehearse/parallel/output_tensors.h>
#include <rehearse/parallel/reducer_session.h>

namespace torch::nn {
class Module;
}

namespace rehearse {

// Data-parallel training over LibTorch's own c10d::Reducer: torch.nn.parallel.DistributedDataParallel for C++. Each
// rank holds a replica of `net` and runs its own part of the batch. After backward, every rank's gradients are the mean
// over all ranks.
//
//   rehearse::DistributedDataParallel ddp(net, ctx.group(), {.bucket_cap_mb = 1});
//   torch::optim::SGD optimizer(ddp.parameters(), 0.1);
//   ...
//   ddp.zero_grad();
//   loss_of(ddp.forward(x)).backward();
//   optimizer.step();
//
// `Net` is a module holder (TORCH_MODULE, torch::nn::Linear) or a std::shared_ptr to a module. Its type must be known,
// because torch::nn::Module's forward() is not virtual. Include the headers of your modules (torch/nn/modules/linear.h,
// say): this header includes none of torch::nn. `group` is any c10d::ProcessGroup or a rehearse::Group; nothing here
// needs the simulation.
//
// The collectives, in the order in which they appear in the group (torch/nn/parallel/distributed.py and
// torch/csrc/distributed/c10d/reducer.cpp of PyTorch):
//   construction   an all-reduce that finds out whether all ranks have the same parameters (PyTorch: an all-gather of
//                  their number and a broadcast of their sizes); a broadcast of rank 0's parameters and buffers
//                  (coalesced up to 250 MiB); without init_sync neither
//   forward        in the second iteration, two broadcasts of rank 0's new buckets, which follow the order in which
//                  gradients arrived in the first (not with find_unused_parameters); rank 0's buffers; then the
//                  module's forward
//   backward       an all-reduce for each bucket, in order of buckets, launched by the gradient that completes the
//                  bucket; with find_unused_parameters or static_graph one more all-reduce, of the map of used
//                  parameters (with static_graph only in the first iteration, and before the others); backward waits
//                  for all of them at its end
// In the first iteration all gradients of one dtype make one bucket, unless find_unused_parameters is on or there is a
// bucket_cap_mb_list; with static_graph, the all-reduces of the first iteration come at the end of backward. As in
// PyTorch, buffers are not broadcast in a forward that follows a forward without grad mode or a forward inside
// no_sync().
//
// Blocking: the constructor, forward() and backward() of the loss wait for their collectives (see above).
// Threads: as a module: one thread (one fiber) at a time.
// Ownership: shares the module, the group and the parameters, and hooks onto the parameters until destroyed. Neither
// copied nor moved. The constructor determines which parameters exist and which of them require gradients; later
// changes have no effect.
// Errors: c10::Error in PyTorch's words, with names of parameters added; c10::ValueError for mixed device types and for
// options that make no sense; errors of the group's collectives. After an error in backward the object cannot be used
// any more.
template <class Net>
class DistributedDataParallel {
 public:
  using Module = typename parallel::ModuleTraits<Net>::Module;

  DistributedDataParallel(Net net, const c10::intrusive_ptr<c10d::ProcessGroup>& group,
                          const DistributedDataParallelOptions& options = {})
      : net_(std::move(net)),
        session_(parallel::ModuleTraits<Net>::pointer(net_), group, options),
        buckets_(parallel::buckets_of(options)) {
    static_assert(std::is_base_of_v<torch::nn::Module, Module>,
                  "Net must be a module holder or a std::shared_ptr to a torch::nn::Module");
  }
  DistributedDataParallel(const DistributedDataParallel&) = delete;
  DistributedDataParallel& operator=(const DistributedDataParallel&) = delete;

  // The module's forward(). Returns its output unchanged, with two exceptions. With find_unused_parameters, and in the
  // first iteration with static_graph, the tensors in the output (TensorVisitor says where it looks for them) become
  // copies, through which the reducer notices unused outputs. With mixed_precision, the module gets copies of the
  // arguments that hold floating-point tensors, in param_dtype.
  template <class... Args>
  auto forward(Args&&... args) {
    return forward_with([this]<class... Each>(Each&&... each) { return module().forward(std::forward<Each>(each)...); },
                        std::forward<Args>(args)...);
  }

  // forward() that calls `body` in place of the module's forward, for example a compiled forward, or a part of the
  // module.
  template <class Body, class... Args>
  auto forward_with(Body&& body, Args&&... args) {
    session_.before_forward();
    const parallel::ActiveDdp active(buckets_);
    const auto dtype = session_.input_dtype();
    if (!dtype) return run(body, std::forward<Args>(args)...);
    return parallel::with_cast_inputs(
        *dtype, [&]<class... Cast>(Cast&&... cast) { return run(body, std::forward<Cast>(cast)...); },
        std::forward<Args>(args)...);
  }

  template <class... Args>
  auto operator()(Args&&... args) {
    return forward(std::forward<Args>(args)...);
  }

  // Clears the gradients. Call this instead of torch::optim::Optimizer::zero_grad(), which calls detach_() and
  // therefore throws on gradients that are views of buckets. gradient_as_bucket_view saves the copy only with
  // set_to_none = false, unlike PyTorch's default: a gradient set to none is allocated anew and then copied into the
  // bucket.
  void zero_grad(bool set_to_none = true) { module().zero_grad(set_to_none); }

  // A forward made while the returned guard lives prepares no reduction, so the gradients of its backward accumulate on
  // this rank. A forward made outside prepares one, and the next backward reduces the accumulated sum, wherever that
  // backward runs and whichever forward it belongs to (as in PyTorch). So let the backward of each forward come before
  // the next forward, or call one backward for several forwards.
  //
  //   {
  //     const auto guard = ddp.no_sync();
  //     for (const auto& part : parts) loss_of(ddp.forward(part)).backward();
  //   }
  //   loss_of(ddp.forward(last)).backward();
  [[nodiscard]] parallel::NoSyncGuard<parallel::ReducerSession> no_sync() { return parallel::NoSyncGuard(session_); }

  // Trains although the ranks have different numbers of inputs: `body` runs the iterations of this rank. After `body`
  // has returned, the rank answers the collectives of the others with zeros until `body` has returned on all ranks, and
  // then takes the parameters of the rank that was last. PyTorch's `with ddp.join():`. All ranks of the group must call
  // it, with equal options. Blocks. `body` must make no other collectives, because ranks without inputs would not make
  // them. Cost: two more small all-reduces in each forward, another one in each forward that broadcasts buffers, and
  // another one with throw_on_early_termination.
  // Errors: c10::Error with throw_on_early_termination, also inside `body`; exceptions of `body`, at once.
  void join(const std::function<void()>& body, const parallel::JoinOptions& options = {}) {
    session_.join(options, body);
  }

  // Replaces the all-reduce and division of each bucket by a hook. Call it before the first backward. Throws c10::Error
  // if there is a hook already, as with mixed_precision, and for a null `hook`. For hooks of Rehearse see comm_hooks.h.
  // logging_data() reports `name`.
  void register_comm_hook(c10d::BuiltinCommHookType hook) { session_.register_comm_hook(hook); }
  void register_comm_hook(std::unique_ptr<c10d::CommHookInterface> hook, const std::string& name = "comm_hook") {
    session_.register_comm_hook(std::move(hook), name);
  }

  // The data that LibTorch's c10d::Logger has about this object ("bucket_sizes", "has_rebuilt_buckets", "comm_hook",
  // ...), with PyTorch's keys. Times are read from the ranks' clock. Statistics of iterations are sampled in the first
  // ten iterations and then in every hundredth. The statistics describe the forward before the last one.
  c10::DDPLoggingData logging_data() const { return session_.logging_data(); }

  Net& net() noexcept { return net_; }
  Module& module() const { return *parallel::ModuleTraits<Net>::pointer(net_); }
  Module* operator->() const { return &module(); }

  // Each parameter once, frozen ones too. In contrast, Module::parameters() repeats a shared parameter for each
  // registration, and an optimizer would step it that often.
  std::vector<at::Tensor> parameters() const { return session_.parameters(); }

  // The current buckets. They may change in the second forward.
  std::vector<parallel::GradientBucket> buckets() const { return session_.buckets(); }

  // The option broadcast_buffers: whether forwards replace this rank's buffers by rank 0's.
  bool broadcasts_buffers() const noexcept { return session_.broadcasts_buffers(); }

  // The buckets by which a compiler splits the module's graph.
  const parallel::DdpBuckets& bucket_options() const noexcept { return buckets_; }

 private:
  template <class Body, class... Args>
  auto run(Body& body, Args&&... args) {
    if constexpr (std::is_void_v<decltype(body(std::forward<Args>(args)...))>) {
      body(std::forward<Args>(args)...);
      finish_without_outputs();
    } else {
      auto output = body(std::forward<Args>(args)...);
      finish(output);
      return output;
    }
  }

  template <class Output>
  void finish(Output& output) {
    if (!session_.wants_outputs()) return finish_without_outputs();
    std::vector<at::Tensor> tensors;
    parallel::for_each_tensor(output, [&](at::Tensor& tensor) { tensors.push_back(tensor); });
    session_.after_forward(tensors);
    std::size_t next = 0;
    parallel::for_each_tensor(output, [&](at::Tensor& tensor) { tensor = tensors[next++]; });
  }

  void finish_without_outputs() {
    std::vector<at::Tensor> none;
    session_.after_forward(none);
  }

  Net net_;
  parallel::ReducerSession session_;
  parallel::DdpBuckets buckets_;
};

}  // namespace rehearse
