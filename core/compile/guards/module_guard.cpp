// SPDX-License-Identifier: BSD-3-Clause
#include "compile/guards/module_guard.h"

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <utility>

#include <torch/nn/module.h>

namespace rehearse::compiler {
namespace {

using torch::OrderedDict;
using torch::nn::Module;

// The accessors of nn::Module return copies, which is too slow in each call. An explicit instantiation may name private
// members, so use one to get pointers to them.
template <class Tag, typename Tag::Member member>
struct Reveal {
  friend typename Tag::Member member_of(Tag) { return member; }
};
struct Children {
  using Member = OrderedDict<std::string, std::shared_ptr<Module>> Module::*;
  friend Member member_of(Children);
};
struct Parameters {
  using Member = OrderedDict<std::string, at::Tensor> Module::*;
  friend Member member_of(Parameters);
};
struct Buffers {
  using Member = OrderedDict<std::string, at::Tensor> Module::*;
  friend Member member_of(Buffers);
};
template struct Reveal<Children, &Module::children_>;
template struct Reveal<Parameters, &Module::parameters_>;
template struct Reveal<Buffers, &Module::buffers_>;

const void* address_of(const std::shared_ptr<Module>& module) { return module.get(); }
const void* address_of(const at::Tensor& tensor) { return tensor.unsafeGetTensorImpl(); }

// Compares the addresses of the items with the next `count` of `expected`, and moves `expected` behind them.
template <class Dict>
bool holds_items(const Dict& now, std::uint32_t count, const void* const*& expected) {
  const void* const* const end = expected + count;
  for (const auto& item : now) {
    if (expected == end || address_of(item.value()) != *expected++) return false;
  }
  return expected == end;
}

std::string joined(const std::string& path, const std::string& name) { return path.empty() ? name : path + "." + name; }

}  // namespace

template <class Dict>
std::uint32_t ModuleGuard::add_objects(const Dict& items) {
  for (const auto& item : items) {
    objects_.push_back(address_of(item.value()));
    names_.push_back(item.key());
    if constexpr (std::is_same_v<std::decay_t<decltype(item.value())>, at::Tensor>) tensors_.push_back(item.value());
  }
  return static_cast<std::uint32_t>(items.size());
}

void ModuleGuard::add(const std::shared_ptr<Module>& module, std::string path) {
  Branch branch{.module = module.get(), .trains = module->is_training()};
  branch.first = static_cast<std::uint32_t>(objects_.size());
  branch.children = add_objects(branch.module->*member_of(Children()));
  branch.parameters = add_objects(branch.module->*member_of(Parameters()));
  branch.buffers = add_objects(branch.module->*member_of(Buffers()));
  branches_.push_back(branch);
  modules_.push_back(module);
  paths_.push_back(std::move(path));
}

ModuleGuard::ModuleGuard(const std::shared_ptr<Module>& root) {
  if (!root) return;
  add(root, "");
  for (const auto& item : root->named_modules(/*name_prefix=*/{}, /*include_self=*/false)) {
    add(item.value(), item.key());
  }
}

void ModuleGuard::prefetch(const Branch& branch) noexcept {
  constexpr std::size_t kLine = 64;
  const auto* const memory = reinterpret_cast<const char*>(branch.module);
  for (std::size_t at = 0; at < sizeof(Module); at += kLine) __builtin_prefetch(memory + at);
}

bool ModuleGuard::holds_branch(const Branch& branch) const {
  const Module& now = *branch.module;
  const void* const* expected = objects_.data() + branch.first;
  return now.is_training() == branch.trains && holds_items(now.*member_of(Children()), branch.children, expected) &&
         holds_items(now.*member_of(Parameters()), branch.parameters, expected) &&
         holds_items(now.*member_of(Buffers()), branch.buffers, expected);
}

template <class Dict>
bool ModuleGuard::find_failure(std::size_t branch, const Dict& now, std::size_t first, std::size_t count,
                               const char* what, GuardFailure& failure) const {
  for (std::size_t i = 0; i < std::min(now.size(), count); ++i) {
    if (address_of((now.begin() + static_cast<std::ptrdiff_t>(i))->value()) == objects_[first + i]) continue;
    failure = {joined(paths_[branch], names_[first + i]), std::string("the ") + what + " at the capture", "another one",
               ""};
    return true;
  }
  if (now.size() == count) return false;
  failure = {joined(paths_[branch], std::string(what) + "s"), std::to_string(count), std::to_string(now.size()), ""};
  return true;
}

GuardFailure ModuleGuard::failure_of(std::size_t number) const {
  const Branch& branch = branches_[number];
  const Module& now = *branch.module;
  const std::size_t parameters = branch.first + branch.children, buffers = parameters + branch.parameters;
  GuardFailure failure;
  if (now.is_training() != branch.trains) {
    failure = {(paths_[number].empty() ? "module" : paths_[number]) + ".is_training()",
               branch.trains ? "true" : "false", branch.trains ? "false" : "true", ""};
  } else if (!find_failure(number, now.*member_of(Children()), branch.first, branch.children, "module", failure) &&
             !find_failure(number, now.*member_of(Parameters()), parameters, branch.parameters, "parameter", failure)) {
    find_failure(number, now.*member_of(Buffers()), buffers, branch.buffers, "buffer", failure);
  }
  return failure;
}

bool ModuleGuard::holds(GuardFailure* failure) const {
  // A model has more modules than fit into the first-level cache, so prefetch a few modules ahead.
  constexpr std::size_t kAhead = 4;
  for (std::size_t i = 0; i < branches_.size(); ++i) {
    if (i + kAhead < branches_.size()) prefetch(branches_[i + kAhead]);
    if (holds_branch(branches_[i])) continue;
    if (failure) *failure = failure_of(i);
    return false;
  }
  return true;
}

}  // namespace rehearse::compiler
