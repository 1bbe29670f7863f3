// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <rehearse/compile/guard_failure.h>
#include <rehearse/compile/leaf.h>

#include "compile/guards/global_state.h"
#include "compile/guards/symbol_guards.h"
#include "compile/guards/tensor_guard.h"
#include "compile/guards/watch_list.h"

namespace torch::nn {
class Module;
}

namespace rehearse::compiler {

// Guards that the module tree is unchanged: the same submodule, parameter and buffer objects as at capture, and each
// module in the same mode, train() or eval(). Keeps these objects alive, so that their addresses stay unique. Members
// that are not registered with their module are not checked.
class ModuleGuard {
 public:
  ModuleGuard() = default;  // without a module: always holds
  explicit ModuleGuard(const std::shared_ptr<torch::nn::Module>& root);

  bool holds(GuardFailure* failure = nullptr) const;

 private:
  // A module of the tree, and how many children, parameters and buffers it has. Their addresses begin at index `first`
  // of objects_.
  struct Branch {
    const torch::nn::Module* module = nullptr;
    bool trains = false;
    std::uint32_t first = 0, children = 0, parameters = 0, buffers = 0;
  };

  void add(const std::shared_ptr<torch::nn::Module>& module, std::string path);
  template <class Dict>
  std::uint32_t add_objects(const Dict& items);
  static void prefetch(const Branch& branch) noexcept;
  bool holds_branch(const Branch& branch) const;
  GuardFailure failure_of(std::size_t branch) const;
  template <class Dict>
  bool find_failure(std::size_t branch, const Dict& now, std::size_t first, std::size_t count, const char* what,
                    GuardFailure& failure) const;

  // Data that each call compares lies close together. Data for messages, and references that keep objects alive, lie
  // elsewhere.
  std::vector<Branch> branches_;
  std::vector<const void*> objects_;  // children, parameters and buffers of each branch
  std::vector<std::string> paths_;    // the branches' paths: "", "encoder.0"
  std::vector<std::string> names_;    // the objects' names within their branch
  std::vector<std::shared_ptr<torch::nn::Module>> modules_;
  std::vector<at::Tensor> tensors_;
};

// All conditions under which a cache entry may serve a call. If all guards hold, a check computes no hash, and
// allocates only for many symbols or for sizes of storages. A check also compares the tensors among the arguments with
// each other, to see which of them are the same tensor.
class GuardSet {
 public:
  // Each adds a guard for the next leaf.
  void add_value(const Leaf& leaf, std::string source);  // it has this value
  void add_tensor(TensorGuard guard);                    // it is a tensor for which `guard` holds
  void add_symbol(std::string source);                   // it is an integer that the symbols' guards check
  // Adds a guard for a tensor that is no argument (a parameter, a global). The capture keeps the tensor.
  void add_captured(const at::Tensor& tensor, TensorGuard guard);

  void set_state(const GlobalState& state) {
    state_ = state;
    state_.function = {};  // the next call may have a copy of the object
  }
  void set_modules(ModuleGuard modules) { modules_ = std::move(modules); }
  void set_symbols(SymbolGuards symbols) { symbols_ = std::move(symbols); }
  void set_watches(WatchList watches) { watches_ = std::move(watches); }
  // Guards identity. If two tensor leaves, or a leaf and a captured tensor, are the same tensor in this call, they must
  // be the same in later calls. If they are different tensors in this call, they must be different in later calls.
  void set_aliases(const LeafList& leaves);
  // Guards sharing: in later calls, each tensor leaf must share memory with the same tensor leaves and captured tensors
  // as in this call. Call it if the code writes to the memory of a leaf or captured tensor.
  void set_memory(const LeafList& leaves);

  // `state`: the state of the calling fiber. Fills `failure`, if given, with the first guard that does not hold.
  bool holds(const LeafList& leaves, const GlobalState& state, GuardFailure* failure = nullptr) const;

  void renew_symbols() { symbols_.renew(); }
  const SymbolGuards& symbols() const noexcept { return symbols_; }
  const std::vector<at::Tensor>& captured() const noexcept { return captured_; }
  // The watched numbers and texts at the capture.
  std::string watched() const { return watches_.text(); }

 private:
  enum class Check : std::uint8_t { Value, Text, Tensor, Symbol };
  struct LeafGuard {
    LeafKind kind;
    Check check;
    std::uint32_t index;  // in texts_ or tensors_
    std::int64_t number;  // value, or address of a group
  };

  void add(LeafGuard guard, std::string source);
  bool holds_leaf(std::size_t index, const Leaf& leaf, GuardFailure* failure) const;
  // Index of the first tensor leaf before leaf `i` that is the same tensor as leaf `i`; otherwise of the captured
  // tensor that is the same; otherwise `i`. Captured tensors continue the numbering after the tensor leaves.
  std::uint32_t alias_of(std::uint32_t i, const LeafList& leaves) const;
  bool holds_structure(const LeafList& leaves, GuardFailure* failure) const;
  bool holds_aliases(const LeafList& leaves, GuardFailure* failure) const;
  // Like alias_of(), for tensors that share memory.
  std::uint32_t memory_of(std::uint32_t i, const LeafList& leaves) const;
  bool holds_memory(const LeafList& leaves, GuardFailure* failure) const;
  bool holds_captured(GuardFailure* failure) const;

  GlobalState state_;
  std::vector<LeafGuard> leaves_;
  std::vector<std::string> sources_;  // for leaves_
  std::vector<std::string> texts_;
  std::vector<TensorGuard> tensors_;
  std::vector<std::uint32_t> tensor_leaves_;
  std::vector<std::uint32_t> aliases_;                          // for each tensor leaf
  std::vector<std::uint32_t> memory_;                           // for each tensor leaf; empty: not compared
  std::vector<c10::intrusive_ptr<c10d::ProcessGroup>> groups_;  // kept alive, so that their addresses stay unique
  std::vector<at::Tensor> captured_;
  std::vector<TensorGuard> captured_guards_;
  ModuleGuard modules_;
  SymbolGuards symbols_;
  WatchList watches_;
};

}  // namespace rehearse::compiler
