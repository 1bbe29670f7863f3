// SPDX-License-Identifier: BSD-3-Clause
#include "compile/guards/module_guard.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <torch/nn/module.h>

namespace rehearse::compiler {
namespace {

using torch::OrderedDict;
using torch::nn::Module;

// A module gives copies of what it has, for which there is no time in each call. An explicit instantiation may name
// what is private, and hands out where it is.
template <class Tag, typename Tag::Place place>
struct Reveal {
  friend typename Tag::Place place_of(Tag) { return place; }
};
struct Children {
  using Place = OrderedDict<std::string, std::shared_ptr<Module>> Module::*;
  friend Place place_of(Children);
};
struct Parameters {
  using Place = OrderedDict<std::string, at::Tensor> Module::*;
  friend Place place_of(Parameters);
};
struct Buffers {
  using Place = OrderedDict<std::string, at::Tensor> Module::*;
  friend Place place_of(Buffers);
};
template struct Reveal<Children, &Module::children_>;
template struct Reveal<Parameters, &Module::parameters_>;
template struct Reveal<Buffers, &Module::buffers_>;

const void* address_of(const std::shared_ptr<Module>& module) { return module.get(); }
const void* address_of(const at::Tensor& tensor) { return tensor.unsafeGetTensorImpl(); }

std::string joined(const std::string& path, const std::string& name) { return path.empty() ? name : path + "." + name; }

}  // namespace

ModuleGuard::Branch ModuleGuard::branch_of(std::shared_ptr<Module> module, std::string path) {
  Branch branch{.module = std::move(module), .trains = false, .path = std::move(path)};
  branch.trains = branch.module->is_training();
  const Module& of = *branch.module;
  for (const auto& item : of.*place_of(Children())) branch.children.push_back({item.key(), item.value()});
  for (const auto& item : of.*place_of(Parameters())) branch.parameters.push_back({item.key(), item.value()});
  for (const auto& item : of.*place_of(Buffers())) branch.buffers.push_back({item.key(), item.value()});
  return branch;
}

ModuleGuard::ModuleGuard(const std::shared_ptr<Module>& root) {
  if (!root) return;
  branches_.push_back(branch_of(root, ""));
  for (const auto& item : root->named_modules(/*name_prefix=*/{}, /*include_self=*/false)) {
    branches_.push_back(branch_of(item.value(), item.key()));
  }
}

template <class Dict, class T>
bool ModuleGuard::holds_items(const Branch& branch, const Dict& now, const std::vector<Named<T>>& captured,
                              const char* what, GuardFailure* failure) {
  const std::size_t count = now.size();
  for (std::size_t i = 0; i < std::min(count, captured.size()); ++i) {
    if (address_of((now.begin() + i)->value()) == address_of(captured[i].object)) continue;
    if (failure) {
      *failure = {joined(branch.path, captured[i].name), std::string("the ") + what + " at the capture", "another one",
                  ""};
    }
    return false;
  }
  if (count == captured.size()) return true;
  if (failure) {
    *failure = {joined(branch.path, std::string(what) + "s"), std::to_string(captured.size()), std::to_string(count),
                ""};
  }
  return false;
}

bool ModuleGuard::holds_branch(const Branch& branch, GuardFailure* failure) {
  const Module& now = *branch.module;
  const bool trains = now.is_training();
  if (trains != branch.trains) {
    if (failure) {
      *failure = {(branch.path.empty() ? "module" : branch.path) + ".is_training()", branch.trains ? "true" : "false",
                  trains ? "true" : "false", ""};
    }
    return false;
  }
  return holds_items(branch, now.*place_of(Children()), branch.children, "module", failure) &&
         holds_items(branch, now.*place_of(Parameters()), branch.parameters, "parameter", failure) &&
         holds_items(branch, now.*place_of(Buffers()), branch.buffers, "buffer", failure);
}

bool ModuleGuard::holds(GuardFailure* failure) const {
  for (const Branch& branch : branches_) {
    if (!holds_branch(branch, failure)) return false;
  }
  return true;
}

}  // namespace rehearse::compiler
