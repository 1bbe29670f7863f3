// SPDX-License-Identifier: BSD-3-Clause
#include "compile/guards/guard_set.h"

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <utility>

#include <fmt/format.h>
#include <rehearse_internal/operators/storage_of.h>
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
    if (expected == end || address_of(item.value()) != *expected) return false;
    ++expected;
  }
  return expected == end;
}

std::string joined(const std::string& path, const std::string& name) { return path.empty() ? name : path + "." + name; }

bool fail(GuardFailure* failure, const std::string& source, const std::string& expected, const std::string& found) {
  if (failure) *failure = {source, expected, found, ""};
  return false;
}

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

void GuardSet::add(LeafGuard guard, std::string source) {
  leaves_.push_back(guard);
  sources_.push_back(std::move(source));
}

void GuardSet::add_value(const Leaf& leaf, std::string source) {
  LeafGuard guard{leaf.kind, Check::Value, 0, 0};
  if (leaf.kind == LeafKind::Text) {
    guard.check = Check::Text;
    guard.index = static_cast<std::uint32_t>(texts_.size());
    texts_.push_back(*leaf.text);
  } else if (leaf.kind == LeafKind::Group) {
    guard.number = reinterpret_cast<std::intptr_t>(leaf.group);
    groups_.push_back(c10::intrusive_ptr<c10d::ProcessGroup>::unsafe_reclaim_from_nonowning(leaf.group));
  } else if (leaf.kind == LeafKind::SymInt) {
    guard.number = leaf.sym_int->as_int_unchecked();
  } else if (leaf.kind != LeafKind::Undefined) {
    guard.number = leaf.number;
  }
  add(guard, std::move(source));
}

void GuardSet::add_tensor(TensorGuard guard) {
  tensor_leaves_.push_back(static_cast<std::uint32_t>(leaves_.size()));
  std::string source = guard.source();
  add({LeafKind::Tensor, Check::Tensor, static_cast<std::uint32_t>(tensors_.size()), 0}, std::move(source));
  tensors_.push_back(std::move(guard));
}

void GuardSet::add_symbol(std::string source) { add({LeafKind::SymInt, Check::Symbol, 0, 0}, std::move(source)); }

void GuardSet::add_captured(const at::Tensor& tensor, TensorGuard guard) {
  captured_.push_back(tensor);
  captured_guards_.push_back(std::move(guard));
}

std::uint32_t GuardSet::alias_of(std::uint32_t i, const LeafList& leaves) const {
  const c10::TensorImpl* tensor = leaves[tensor_leaves_[i]].tensor->unsafeGetTensorImpl();
  for (std::uint32_t j = 0; j < i; ++j) {
    if (leaves[tensor_leaves_[j]].tensor->unsafeGetTensorImpl() == tensor) return j;
  }
  for (std::size_t j = 0; j < captured_.size(); ++j) {
    if (captured_[j].unsafeGetTensorImpl() == tensor) return static_cast<std::uint32_t>(tensor_leaves_.size() + j);
  }
  return i;
}

void GuardSet::set_aliases(const LeafList& leaves) {
  aliases_.clear();
  for (std::uint32_t i = 0; i < tensor_leaves_.size(); ++i) aliases_.push_back(alias_of(i, leaves));
}

bool GuardSet::holds_aliases(const LeafList& leaves, GuardFailure* failure) const {
  const auto count = static_cast<std::uint32_t>(tensor_leaves_.size());
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t alias = alias_of(i, leaves);
    if (alias == aliases_[i]) continue;
    const auto name = [&](std::uint32_t of) {
      if (of == i) return std::string("a tensor of its own");
      return "the tensor " + (of < count ? sources_[tensor_leaves_[of]] : captured_guards_[of - count].source());
    };
    return failure && fail(failure, sources_[tensor_leaves_[i]], name(aliases_[i]), name(alias));
  }
  return true;
}

void GuardSet::set_memory(const LeafList& leaves) {
  memory_.clear();
  for (std::uint32_t i = 0; i < tensor_leaves_.size(); ++i) memory_.push_back(memory_of(i, leaves));
}

std::uint32_t GuardSet::memory_of(std::uint32_t i, const LeafList& leaves) const {
  const c10::StorageImpl* memory = operators::storage_of(*leaves[tensor_leaves_[i]].tensor);
  if (memory == nullptr) return i;
  for (std::uint32_t j = 0; j < i; ++j) {
    if (operators::storage_of(*leaves[tensor_leaves_[j]].tensor) == memory) return j;
  }
  for (std::size_t j = 0; j < captured_.size(); ++j) {
    if (operators::storage_of(captured_[j]) == memory) return static_cast<std::uint32_t>(tensor_leaves_.size() + j);
  }
  return i;
}

bool GuardSet::holds_memory(const LeafList& leaves, GuardFailure* failure) const {
  for (std::uint32_t i = 0; i < memory_.size(); ++i) {
    if (memory_of(i, leaves) == memory_[i]) continue;
    const auto text = [i](std::uint32_t of) { return of == i ? "memory of its own" : "the memory of another tensor"; };
    return failure && fail(failure, sources_[tensor_leaves_[i]], text(memory_[i]), text(memory_of(i, leaves)));
  }
  return true;
}

bool GuardSet::holds_leaf(std::size_t index, const Leaf& leaf, GuardFailure* failure) const {
  const LeafGuard& guard = leaves_[index];
  switch (guard.check) {
    case Check::Tensor:
      return tensors_[guard.index].holds(*leaf.tensor, failure);
    case Check::Text:
      if (texts_[guard.index] == *leaf.text) return true;
      return failure && fail(failure, sources_[index], text_of(Leaf::of(texts_[guard.index])), text_of(leaf));
    case Check::Symbol:
      return true;
    case Check::Value:
      break;
  }
  std::int64_t number = 0;
  if (guard.kind == LeafKind::SymInt) {
    number = leaf.sym_int->as_int_unchecked();
  } else if (guard.kind == LeafKind::Group) {
    number = reinterpret_cast<std::intptr_t>(leaf.group);
  } else if (guard.kind != LeafKind::Undefined) {
    number = leaf.number;
  }
  if (number == guard.number) return true;
  if (!failure) return false;
  if (guard.kind == LeafKind::Group) return fail(failure, sources_[index], "the group at the capture", "another one");
  const LeafKind kind = guard.kind == LeafKind::SymInt ? LeafKind::Int : guard.kind;
  return fail(failure, sources_[index], text_of(Leaf::of(kind, guard.number)), text_of(leaf));
}

bool GuardSet::holds_structure(const LeafList& leaves, GuardFailure* failure) const {
  const std::size_t shared = std::min(leaves.size(), leaves_.size());
  for (std::size_t i = 0; i < shared; ++i) {
    if (leaves[i].kind != leaves_[i].kind) {
      return failure &&
             fail(failure, sources_[i], std::string(text_of(leaves_[i].kind)), std::string(text_of(leaves[i].kind)));
    }
    if (!holds_leaf(i, leaves[i], failure)) return false;
  }
  if (leaves.size() == leaves_.size()) return true;
  return failure && fail(failure, "arguments", std::to_string(leaves_.size()) + " values",
                         std::to_string(leaves.size()) + " values");
}

bool GuardSet::holds_captured(GuardFailure* failure) const {
  for (std::size_t i = 0;; ++i) {
    i = TensorGuard::first_doubtful(captured_guards_, captured_, i);
    if (i == captured_.size()) return true;
    if (!captured_guards_[i].holds(captured_[i], failure)) return false;
  }
}

bool GuardSet::holds(const LeafList& leaves, const GlobalState& state, GuardFailure* failure) const {
  if (!(state == state_)) {
    if (failure) *failure = difference(state_, state);
    return false;
  }
  return holds_structure(leaves, failure) && holds_aliases(leaves, failure) && holds_memory(leaves, failure) &&
         symbols_.holds(leaves, failure) && holds_captured(failure) && modules_.holds(failure) &&
         watches_.holds(state.function.bytes, failure);
}

std::string text_of(const GuardFailure& failure) {
  std::string text = fmt::format("{}: expected {}, found {}", failure.source, failure.expected, failure.found);
  if (!failure.line.empty()) text += fmt::format(" ({})", failure.line);
  return text;
}

}  // namespace rehearse::compiler
