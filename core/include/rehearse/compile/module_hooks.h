// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <rehearse/parallel/module_traits.h>
#include <rehearse/parallel/output_tensors.h>

namespace rehearse {

// Removes a hook of a module. Owns neither hook nor module: when they are gone, remove() does nothing.
class HookHandle {
 public:
  explicit HookHandle(std::function<void()> remove) : remove_(std::move(remove)) {}
  void remove() const { remove_(); }

 private:
  std::function<void()> remove_;
};

namespace compiler {

// The hooks of one module, in order of registration.
class ModuleHookLists {
 public:
  using Tensors = std::vector<at::Tensor>;
  using OneList = std::function<void(Tensors&)>;
  using TwoLists = std::function<void(Tensors& changed, const Tensors& others)>;

  template <class Hook>
  class List {
   public:
    std::int64_t add(Hook hook) {
      hooks_.emplace_back(next_, std::move(hook));
      return next_++;
    }
    bool remove(std::int64_t number) {
      return std::erase_if(hooks_, [number](const auto& each) { return each.first == number; }) > 0;
    }
    bool empty() const { return hooks_.empty(); }
    auto begin() const { return hooks_.begin(); }
    auto end() const { return hooks_.end(); }

   private:
    std::vector<std::pair<std::int64_t, Hook>> hooks_;
    std::int64_t next_ = 0;
  };

  List<OneList> forward_pre, backward_pre;
  List<TwoLists> forward, backward;
  std::int64_t changes = 0;  // compiled functions guard this counter
};

// One call of a module with hooks. Calls the forward hooks, and installs the backward hooks around the call.
class HookedCall {
 public:
  using Tensors = ModuleHookLists::Tensors;

  // In a captured function, guards the hooks that are registered now.
  explicit HookedCall(const std::shared_ptr<ModuleHookLists>& hooks);
  HookedCall(const HookedCall&) = delete;
  HookedCall& operator=(const HookedCall&) = delete;
  ~HookedCall();

  // Call these before and after the module's forward(). They may replace tensors.
  void before(Tensors& inputs);
  void after(Tensors& outputs);

 private:
  class Backward;

  ModuleHookLists hooks_;  // a copy, made when the call begins
  Tensors inputs_;
  std::shared_ptr<Backward> backward_;  // null if there are no backward hooks, or if grad mode is off
};

template <class Value>
ModuleHookLists::Tensors tensors_of(Value& value) {
  ModuleHookLists::Tensors tensors;
  parallel::for_each_tensor(value, [&](at::Tensor& tensor) { tensors.push_back(tensor); });
  return tensors;
}

template <class Value>
void put_tensors(Value& value, const ModuleHookLists::Tensors& tensors) {
  auto next = tensors.begin();
  parallel::for_each_tensor(value, [&](at::Tensor& tensor) { tensor = *next++; });
}

// forward() of a module with hooks. If the module's own forward() is not overloaded, HookedForward::forward() has the
// same parameters, so that torch::nn::Sequential accepts the module with hooks. Otherwise it is a template.
template <class Hooked, class Forward>
struct HookedForward {
  template <class... Args>
  auto forward(Args&&... args) {
    return static_cast<Hooked&>(*this).call(std::forward<Args>(args)...);
  }
};
template <class Hooked, class Result, class Module, class... Args>
struct HookedForward<Hooked, Result (Module::*)(Args...)> {
  Result forward(Args... args) { return static_cast<Hooked&>(*this).call(std::forward<Args>(args)...); }
};
template <class Hooked, class Result, class Module, class... Args>
struct HookedForward<Hooked, Result (Module::*)(Args...) const> : HookedForward<Hooked, Result (Module::*)(Args...)> {};

template <class Module>
auto forward_of() {
  if constexpr (requires { &Module::forward; }) {
    return std::type_identity<decltype(&Module::forward)>();
  } else {
    return std::type_identity<void>();
  }
}

}  // namespace compiler

// Adds hooks to a module, because LibTorch's modules have none: PyTorch's register_forward_pre_hook() and its siblings.
//
//   auto layer = std::make_shared<rehearse::ModuleHooks<torch::nn::Linear>>(torch::nn::Linear(10, 10));
//   layer->register_full_backward_hook([](auto&, auto& grad_inputs, const auto&) { grad_inputs[0] *= 2; });
//   torch::nn::Sequential net(layer, torch::nn::ReLU());
//
// Use the ModuleHooks in place of the module: ModuleHooks::forward() calls the hooks, Module::forward() does not. A
// hook gets the module and lists of tensors: the tensors in the arguments or in the output, in order
// (output_tensors.h), or a gradient for each of them (undefined if the tensor requires none). To change a list that is
// not const, a hook puts other tensors into it. Hooks run in the order in which they were registered; forward() runs
// those that are registered when it begins.
//
//   forward pre        (module, inputs)                           before forward()
//   forward            (module, const inputs, outputs)            after forward()
//   full backward pre  (module, grad_outputs)                     once the gradients of all outputs are known
//   full backward      (module, grad_inputs, const grad_outputs)  once the gradients of all inputs are known. If no
//                      input requires grad: after the backward pre hooks, with undefined gradients; hooks must not
//                      replace these
//
// If grad mode is on, full backward hooks replace inputs that require grad by views of themselves, and backward hooks
// of either kind do the same to outputs. Eager code cannot change these views in place. If compile() captures the
// function, hooks become part of the graph; its backward includes the hooks of modules with at most one input and one
// output that require grad. Registering or removing a hook compiles anew.
//
// `Net` is a module holder or a std::shared_ptr to a module, which is registered as "module". An exception of a hook
// reaches the caller of forward() or backward(). Throws c10::ValueError if a hook changes the length of a list.
// Threads: as a module. Source: torch/utils/hooks.py, BackwardHook.
template <class Net>
class ModuleHooks : public torch::nn::Module,
                    public compiler::HookedForward<
                        ModuleHooks<Net>,
                        typename decltype(compiler::forward_of<typename parallel::ModuleTraits<Net>::Module>())::type> {
 public:
  using Module = typename parallel::ModuleTraits<Net>::Module;
  using Tensors = std::vector<at::Tensor>;

  explicit ModuleHooks(const Net& net) : net_(register_module("module", parallel::ModuleTraits<Net>::pointer(net))) {}

  // `hook`: void(Module&, Tensors& inputs)
  template <class Hook>
  HookHandle register_forward_pre_hook(Hook hook) {
    return add(&compiler::ModuleHookLists::forward_pre, of_one(std::move(hook)));
  }
  // `hook`: void(Module&, const Tensors& inputs, Tensors& outputs)
  template <class Hook>
  HookHandle register_forward_hook(Hook hook) {
    return add(&compiler::ModuleHookLists::forward,
               of_two([hook = std::move(hook)](Module& module, Tensors& outputs, const Tensors& inputs) mutable {
                 hook(module, inputs, outputs);
               }));
  }
  // `hook`: void(Module&, Tensors& grad_outputs)
  template <class Hook>
  HookHandle register_full_backward_pre_hook(Hook hook) {
    return add(&compiler::ModuleHookLists::backward_pre, of_one(std::move(hook)));
  }
  // `hook`: void(Module&, Tensors& grad_inputs, const Tensors& grad_outputs)
  template <class Hook>
  HookHandle register_full_backward_hook(Hook hook) {
    return add(&compiler::ModuleHookLists::backward, of_two(std::move(hook)));
  }

  Module& module() const { return *net_; }
  Module* operator->() const { return net_.get(); }

  // The body of forward().
  template <class... Args>
  auto call(Args&&... args) {
    compiler::HookedCall hooked(hooks_);
    std::tuple<std::decay_t<Args>...> inputs(std::forward<Args>(args)...);
    Tensors tensors = compiler::tensors_of(inputs);
    hooked.before(tensors);
    compiler::put_tensors(inputs, tensors);
    auto output = std::apply([this](auto&... each) { return net_->forward(each...); }, inputs);
    tensors = compiler::tensors_of(output);
    hooked.after(tensors);
    compiler::put_tensors(output, tensors);
    return output;
  }

 private:
  // Calls in progress share the hook and keep the module alive.
  template <class Hook>
  compiler::ModuleHookLists::OneList of_one(Hook hook) {
    const auto shared = std::make_shared<Hook>(std::move(hook));
    return [shared, net = net_](Tensors& tensors) { (*shared)(*net, tensors); };
  }
  template <class Hook>
  compiler::ModuleHookLists::TwoLists of_two(Hook hook) {
    const auto shared = std::make_shared<Hook>(std::move(hook));
    return [shared, net = net_](Tensors& changed, const Tensors& others) { (*shared)(*net, changed, others); };
  }
  template <class List, class Hook>
  HookHandle add(List compiler::ModuleHookLists::* list, Hook hook) {
    ++hooks_->changes;
    const std::int64_t number = (hooks_.get()->*list).add(std::move(hook));
    return HookHandle([hooks = std::weak_ptr(hooks_), list, number] {
      const auto lists = hooks.lock();
      if (lists && (lists.get()->*list).remove(number)) ++lists->changes;
    });
  }

  std::shared_ptr<Module> net_;
  std::shared_ptr<compiler::ModuleHookLists> hooks_ = std::make_shared<compiler::ModuleHookLists>();
};

}  // namespace rehearse
