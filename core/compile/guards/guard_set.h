// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <rehearse/compile/guard_failure.h>
#include <rehearse/compile/leaf.h>

#include "compile/guards/global_state.h"
#include "compile/guards/module_guard.h"
#include "compile/guards/symbol_guards.h"
#include "compile/guards/tensor_guard.h"
#include "compile/guards/watch_list.h"

namespace rehearse::compiler {

// All that an entry of the cache takes for granted. Checking a call that passes neither allocates nor hashes, and costs
// what there is to compare; tensors among the arguments are compared with each other, to see which are one.
class GuardSet {
 public:
  // Of the leaf that follows those added before.
  void add_value(const Leaf& leaf, std::string source);  // has this value
  void add_tensor(TensorGuard guard);                    // is such a tensor
  void add_symbol(std::string source);                   // an integer that the symbols' guards look at
  // Of the capture's own tensors, which it keeps.
  void add_captured(const at::Tensor& tensor, TensorGuard guard);

  void set_state(const GlobalState& state) { state_ = state; }
  void set_modules(ModuleGuard modules) { modules_ = std::move(modules); }
  void set_symbols(SymbolGuards symbols) { symbols_ = std::move(symbols); }
  void set_watches(WatchList watches) { watches_ = std::move(watches); }
  // Which tensor leaves are one tensor, or one of the capture's own, in this call.
  void set_aliases(const LeafList& leaves);
  // Which tensor leaves lie in the memory of another, or of a tensor of the capture's own: for code that writes to it.
  void set_memory(const LeafList& leaves);

  // `state`: that of the calling fiber. Fills `failure`, when it is given, with the first guard that does not hold.
  bool holds(const LeafList& leaves, const GlobalState& state, GuardFailure* failure = nullptr) const;

  void renew_symbols() { symbols_.renew(); }
  const SymbolGuards& symbols() const noexcept { return symbols_; }
  const std::vector<at::Tensor>& captured() const noexcept { return captured_; }

 private:
  enum class Check : std::uint8_t { Value, Text, Tensor, Symbol };
  struct LeafGuard {
    LeafKind kind;
    Check check;
    std::uint32_t index;  // of texts_ or tensors_
    std::int64_t number;  // value, or address of a group
  };

  void add(LeafGuard guard, std::string source);
  bool holds_leaf(std::size_t index, const Leaf& leaf, GuardFailure* failure) const;
  // The index of the first tensor leaf that is the same as tensor leaf `i`; of a tensor of the capture's own, counted
  // on from the leaves; else `i`.
  std::uint32_t alias_of(std::uint32_t i, const LeafList& leaves) const;
  bool holds_structure(const LeafList& leaves, GuardFailure* failure) const;
  bool holds_aliases(const LeafList& leaves, GuardFailure* failure) const;
  // As alias_of(), of memory.
  std::uint32_t memory_of(std::uint32_t i, const LeafList& leaves) const;
  bool holds_memory(const LeafList& leaves, GuardFailure* failure) const;
  bool holds_captured(GuardFailure* failure) const;

  GlobalState state_;
  std::vector<LeafGuard> leaves_;
  std::vector<std::string> sources_;  // of leaves_
  std::vector<std::string> texts_;
  std::vector<TensorGuard> tensors_;
  std::vector<std::uint32_t> tensor_leaves_;
  std::vector<std::uint32_t> aliases_;                          // of each tensor leaf
  std::vector<std::uint32_t> memory_;                           // of each tensor leaf; empty: not compared
  std::vector<c10::intrusive_ptr<c10d::ProcessGroup>> groups_;  // so that their addresses stay theirs
  std::vector<at::Tensor> captured_;
  std::vector<TensorGuard> captured_guards_;
  ModuleGuard modules_;
  SymbolGuards symbols_;
  WatchList watches_;
};

}  // namespace rehearse::compiler
