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

// Data parallel training over LibTorch's own c10d::Reducer: torch.nn.parallel.DistributedDataParallel for
// C++. Each rank holds a replica of `net` and runs its own part of the batch; after backward, every rank's
// gradients are the mean over all ranks.
//
//   rehearse::DistributedDataParallel ddp(net, ctx.group(), {.bucket_cap_mb = 1});
//   torch::optim::SGD optimizer(ddp.parameters(), 0.1);
//   ...
//   ddp.zero_grad();
//   loss_of(ddp.forward(x)).backward();
//   optimizer.step();
//
// `Net` is a module holder (TORCH_MODULE, torch::nn::Linear) or a std::shared_ptr to a module: forward() of
// torch::nn::Module is not virtual, so the type must be known. Include your module's own header
// (torch/nn/modules/linear.h, say): this one brings in none of torch::nn. `group` is any c10d::ProcessGroup or a
// rehearse::Group; nothing of the simulation is assumed.
//
// What it does, in the order in which collectives appear in the group (torch/nn/parallel/distributed.py and
// torch/csrc/distributed/c10d/reducer.cpp of PyTorch):
//   construction   an all-reduce that finds whether all ranks have the same parameters (PyTorch: an
//                  all-gather of their number and a broadcast of their sizes), broadcast of rank 0's
//                  parameters and buffers (coalesced up to 250 MiB)
//   forward        in the second iteration: two broadcasts with rank 0's new buckets, which follow the order
//                  in which gradients arrived in the first (never with find_unused_parameters);
//                  rank 0's buffers; the module's forward
//   backward       an all-reduce for each bucket, in order of buckets, launched by the gradient that
//                  completes it; with find_unused_parameters one more, of the map of used parameters;
//                  waited for at the end of backward
// In the first iteration all gradients of one dtype make one bucket, unless find_unused_parameters is on;
// with static_graph its all-reduces come at the end of backward. As in PyTorch, buffers are not broadcast in
// a forward that follows one without grad mode or inside no_sync().
//
// Blocking: the constructor, forward() and backward() of the loss block the rank until all ranks have made
// theirs.
// Threads: as a module: one thread (one fiber) at a time.
// Ownership: shares the module, the group and the parameters, and hooks onto the parameters until destroyed.
// Neither copied nor moved. Which parameters there are, and which require gradients, is looked up once, at
// construction.
// Errors: c10::Error in PyTorch's words, with names of parameters added; c10::ValueError for mixed device
// types and sizes of buckets; errors of the group's collectives. After an error in backward the object is of
// no further use.
template <class Net>
class DistributedDataParallel {
 public:
  using Module = typename parallel::ModuleTraits<Net>::Module;

  DistributedDataParallel(Net net, const c10::intrusive_ptr<c10d::ProcessGroup>& group,
                          DistributedDataParallelOptions options = {})
      : net_(std::move(net)),
        session_(parallel::ModuleTraits<Net>::pointer(net_), group, options),
        buckets_(parallel::buckets_of(options)) {
    static_assert(std::is_base_of_v<torch::nn::Module, Module>,
                  "Net must be a module holder or a std::shared_ptr to a torch::nn::Module");
  }
  DistributedDataParallel(const DistributedDataParallel&) = delete;
  DistributedDataParallel& operator=(const DistributedDataParallel&) = delete;

  // The module's forward(). The output is returned as it is, but with find_unused_parameters, and in the
  // first iteration with static_graph, its tensors (see TensorVisitor for where they are looked for) are
  // copies through which unused outputs are noticed. With mixed_precision, the module gets copies of
  // arguments that hold floating-point tensors, in param_dtype, and the output is what it computes from them.
  template <class... Args>
  auto forward(Args&&... args) {
    return forward_with([this]<class... Each>(Each&&... each) { return module().forward(std::forward<Each>(each)...); },
                        std::forward<Args>(args)...);
  }

  // forward() with `body` in the place of the module's: for a compiled form of it, or a part of it.
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

  // Clears the gradients. Use this in place of torch::optim::Optimizer::zero_grad(), which calls detach_()
  // and so throws on gradients that are views of buckets. Other than PyTorch's default,
  // gradient_as_bucket_view pays off with set_to_none = false: gradients set to none are made anew and copied
  // into the bucket.
  void zero_grad(bool set_to_none = true) { module().zero_grad(set_to_none); }

  // While the returned guard lives, gradients stay this rank's own and add up; the first backward of a
  // forward made after it reduces what has come together. A forward inside it counts, wherever its backward
  // is.
  //
  //   {
  //     const auto guard = ddp.no_sync();
  //     for (const auto& part : parts) loss_of(ddp.forward(part)).backward();
  //   }
  //   loss_of(ddp.forward(last)).backward();
  [[nodiscard]] parallel::NoSyncGuard<parallel::ReducerSession> no_sync() { return parallel::NoSyncGuard(session_); }

  // Trains on inputs of which ranks have different numbers: `body` makes the iterations of this rank. When it
  // has returned, the rank answers the collectives of the others with zeros until all have returned, and then
  // takes the parameters of the last one. PyTorch's `with ddp.join():`. All ranks of the group call it, with
  // equal options. Blocks. `body` must make no other collectives that ranks without inputs do not make. Cost:
  // two small all-reduces more in each forward. Errors: c10::Error, also inside of `body`, with
  // throw_on_early_termination; what `body` throws, at once.
  void join(const std::function<void()>& body, const parallel::JoinOptions& options = {}) {
    session_.join(options, body);
  }

  // Takes the place of the all-reduce and division of each bucket. Once, and before the first backward;
  // throws c10::Error otherwise. Hooks of rehearse: see comm_hooks.h. `name` is for logging_data().
  void register_comm_hook(c10d::BuiltinCommHookType hook) { session_.register_comm_hook(hook); }
  void register_comm_hook(std::unique_ptr<c10d::CommHookInterface> hook, const std::string& name = "comm_hook") {
    session_.register_comm_hook(std::move(hook), name);
  }

  // What LibTorch's c10d::Logger knows of this object ("bucket_sizes", "has_rebuilt_buckets", "comm_hook",
  // ...), with PyTorch's keys. Times are those of the clock that the ranks see. Statistics of iterations are
  // those of the last but one forward, of the first ten iterations and then of every hundredth.
  c10::DDPLoggingData logging_data() const { return session_.logging_data(); }

  Net& net() noexcept { return net_; }
  Module& module() const { return *parallel::ModuleTraits<Net>::pointer(net_); }
  Module* operator->() const { return &module(); }

  // Each parameter once, frozen ones too. Module::parameters() has a shared parameter as often as it is
  // registered, and an optimizer would step it as often.
  std::vector<at::Tensor> parameters() const { return session_.parameters(); }

  // The buckets as they are now; they change in the second forward.
  std::vector<parallel::GradientBucket> buckets() const { return session_.buckets(); }

  // Are its buffers those of rank 0 from each forward that trains on, until the module changes them?
  bool broadcasts_buffers() const noexcept { return session_.broadcasts_buffers(); }

  // By what a compiler splits the module's graph.
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
