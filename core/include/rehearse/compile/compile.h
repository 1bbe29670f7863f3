// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <rehearse/compile/argument_sinks.h>
#include <rehearse/compile/callable.h>
#include <rehearse/compile/compile_options.h>
#include <rehearse/compile/typed_call.h>
#include <rehearse/parallel/active_ddp.h>
#include <rehearse/parallel/module_traits.h>

namespace torch::nn {
class Module;
}

namespace rehearse::parallel {
struct ShardUnitInfo;
}

namespace rehearse {
namespace compiler {

// A module holder (TORCH_MODULE) or a std::shared_ptr to a module.
template <class T>
concept ModuleHandle = requires(T& value) {
  { value.ptr() } -> std::convertible_to<std::shared_ptr<torch::nn::Module>>;
} || requires(T& value) {
  { value } -> std::convertible_to<std::shared_ptr<torch::nn::Module>>;
};

// DistributedDataParallel, classes with the same members, and FullyShardedDataParallel.
template <class T>
concept DataParallelModule = requires(const T& value) {
  { value.module() } -> std::convertible_to<torch::nn::Module&>;
} && (requires(const T& value) {
  { value.bucket_options() } -> std::convertible_to<const parallel::DdpBuckets&>;
} || requires(const T& value) {
  { value.units() } -> std::same_as<std::vector<parallel::ShardUnitInfo>>;
});

template <class Net>
std::shared_ptr<torch::nn::Module> pointer_to(const Net& net) {
  return parallel::ModuleTraits<Net>::pointer(net);
}

// A module's forward() as a function object.
template <class Module>
struct Forward {
  std::shared_ptr<Module> module;

  template <class... Args>
    requires requires(Module& each, Args&&... args) { each.forward(std::forward<Args>(args)...); }
  decltype(auto) operator()(Args&&... args) const {
    return module->forward(std::forward<Args>(args)...);
  }
};

template <class Module>
concept HasOneForward = requires { &Module::forward; };

template <class Module>
struct IsOverloaded<Forward<Module>> : std::bool_constant<!HasOneForward<Module>> {};

// forward() of the module inside a data-parallel wrapper.
template <class Ddp>
struct ForwardWithin {
  Ddp& ddp;

  template <class... Args>
  auto operator()(Args&&... args) const -> decltype(ddp.module().forward(std::forward<Args>(args)...)) {
    return ddp.module().forward(std::forward<Args>(args)...);
  }
};

template <class Ddp>
struct IsOverloaded<ForwardWithin<Ddp>>
    : std::bool_constant<!HasOneForward<std::remove_reference_t<decltype(std::declval<Ddp&>().module())>>> {};

}  // namespace compiler

// The result of compile(). Call it like the function, on any number of ranks; each rank has its own cache. Copies share
// their caches. Several threads may call it at once. Outside of a World, a call runs the function as it is while
// another thread compiles it; with a group, that call throws CompileError.
template <class Function>
class Compiled {
 public:
  Compiled(Function function, CompileOptions options, std::shared_ptr<torch::nn::Module> module)
      : function_(std::move(function)),
        callable_(std::make_shared<compiler::Callable>(std::move(options), std::move(module))) {}

  template <class... Args>
    requires std::invocable<Function&, Args...>
  auto operator()(Args&&... args) {
    return compiler::call(*callable_, function_, std::forward<Args>(args)...);
  }

  // explain() and stats() say what the calling rank's cache has done so far. Outside of a World, while another thread
  // compiles the function, stats() says what the cache had done before, and explain() throws CompileError.
  compiler::Explanation explain() const { return callable_->explain(); }
  compiler::CompileStats stats() const { return callable_->stats(); }

 private:
  Function function_;
  std::shared_ptr<compiler::Callable> callable_;
};

// As Compiled, for the forward of a data-parallel or sharded module. Only the module's forward is compiled. The
// wrapper's own code, which runs before and after it, runs in each call.
template <class Ddp>
class CompiledDataParallel {
 public:
  CompiledDataParallel(Ddp& ddp, CompileOptions options)
      : ddp_(&ddp),
        callable_(std::make_shared<compiler::Callable>(std::move(options), compiler::pointer_to(ddp.net()))) {}

  template <class... Args>
  auto operator()(Args&&... args) {
    return ddp_->forward_with(
        [this]<class... Each>(Each&&... each) {
          compiler::ForwardWithin<Ddp> forward{*ddp_};
          return compiler::call(*callable_, forward, std::forward<Each>(each)...);
        },
        std::forward<Args>(args)...);
  }

  compiler::Explanation explain() const { return callable_->explain(); }
  compiler::CompileStats stats() const { return callable_->stats(); }

 private:
  Ddp* ddp_;
  std::shared_ptr<compiler::Callable> callable_;
};

// Returns a callable that takes the arguments of `net` or `function`, and runs the graph that a back end compiles from
// its code: torch.compile in C++. The first call runs the user's code on fakes, which gives a graph. A later call runs
// a compiled graph whose guards all hold. If there is none, the call compiles anew, until the cache has
// CompileOptions::recompile_limit entries.
//
//   auto compiled = rehearse::compile(net, {.backend = "aot_eager"});
//   at::Tensor y = compiled(x);
//
// Include the headers of your modules (torch/nn/modules/linear.h, say): this header includes none of torch::nn.
//
// Accepted: a module holder or a std::shared_ptr to a module (their forward()), any function object, and a
// DistributedDataParallel, FakeDDP or FullyShardedDataParallel, which must outlive the result. For arguments and
// results see argument_walk.h.
//
// Guarded: arguments (a tensor's dtype, device, layout and requires_grad, and its sizes if the graph uses them; an
// integer by value, a c10::SymInt by value until it varies), the identity of modules, parameters and buffers, train()
// or eval() of modules, grad mode, inference mode, autocast, deterministic mode, the back ends of attention, default
// dtype, and values passed to rehearse::watch(). A module, parameter or buffer that replaces another one fails its
// guard. Not guarded: everything else that the code reads (members, globals, the clock); see CompileOptions::verify.
//
// Inside another capture the code runs as it is and becomes part of that graph. Blocks while another fiber of the rank
// compiles the same function and, with CompileOptions::group, until the other ranks of the group arrive. Errors: with
// fullgraph, those of the capture (capture::FakeError, shapes::ShapeError); compiler::CompileError; all of them are in
// <rehearse/compile/errors.h>. Also what the code and the graph's operators throw.
template <compiler::ModuleHandle Net>
auto compile(const Net& net, CompileOptions options = {}) {
  using Traits = parallel::ModuleTraits<Net>;
  const std::shared_ptr<typename Traits::Module> module = Traits::pointer(net);
  if (options.name.empty()) options.name = "forward";
  return Compiled(compiler::Forward<typename Traits::Module>{module}, std::move(options), module);
}

template <compiler::DataParallelModule Ddp>
auto compile(Ddp& ddp, CompileOptions options = {}) {
  if (options.name.empty()) options.name = "forward";
  return CompiledDataParallel<Ddp>(ddp, std::move(options));
}

template <class Function>
  requires(!compiler::ModuleHandle<Function> && !compiler::DataParallelModule<Function>)
auto compile(Function function, CompileOptions options = {}) {
  if (options.name.empty()) options.name = "function";
  return Compiled<Function>(std::move(function), std::move(options), nullptr);
}

}  // namespace rehearse
