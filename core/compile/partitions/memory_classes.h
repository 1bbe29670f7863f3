// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <unordered_map>
#include <vector>

#include <ATen/core/ivalue.h>
#include <rehearse/graph/graph_module.h>

namespace rehearse::compiler {

// For each input of a graph, the memory in which it lies. Null if the input has no memory (it may be a number), or if
// its memory is unknown.
using InputMemory = std::vector<const void*>;
InputMemory memory_of(const std::vector<c10::IValue>& inputs);

// Groups the values of a split graph into classes. Values that may share memory are in the same class: a view and its
// base, or a tensor before and after an in-place change. The schemas of the operators say which values these are.
// Values of different classes never share memory.
class MemoryClasses {
 public:
  // `inputs`: the memory of each placeholder of the graph; empty: no two placeholders share memory.
  explicit MemoryClasses(const graph::GraphModule& split, const InputMemory& inputs = {});

  // True if a node of `module` itself may write to the memory of a placeholder.
  bool writes_to_inputs(const graph::GraphModule& module) const;

  // The class of a node of the graph or of one of its pieces.
  std::size_t of(const graph::Node& node) const { return root(elements_.at(&node)); }

 private:
  void visit(const graph::GraphModule& module);
  std::size_t element_of(const graph::Node& node, const graph::GraphModule& module);
  std::size_t element_of_call(const graph::Node& node);
  std::size_t element_of_item(const graph::Node& node);
  std::size_t element_of_piece(const graph::Node& call, const graph::GraphModule& piece);
  std::size_t joined(const graph::Argument& argument);
  std::size_t new_element();
  std::size_t root(std::size_t element) const;

  std::unordered_map<const graph::Node*, std::size_t> elements_;
  std::unordered_map<const graph::Node*, std::vector<std::size_t>> items_;  // for results of pieces
  std::vector<std::size_t> parents_;                                        // union-find; roots are their own parents
};

// Knows when the values between the pieces of a split graph are made and last used, and which of them may share memory.
// Times are the numbers of the pieces in the order of their calls. In a graph that was not split, piece #0 makes and
// returns everything.
class ValueLives {
 public:
  // `split` and `memory` must outlive this object.
  ValueLives(const graph::GraphModule& split, const MemoryClasses& memory);

  // True if another value that exists when `value` is made, and is used afterwards, may share memory with `value`.
  // Always true for inputs, because the caller holds them.
  bool shares_when_made(const graph::Node& value) const;
  // True if another value, which is used in the call of piece #`piece` or later, may share memory with `value` at that
  // call.
  bool shares_at(const graph::Node& value, std::size_t piece) const;
  // True if the graph returns `value`, or later makes another value that may share memory with it.
  bool leaves_or_is_shared(const graph::Node& value) const;

 private:
  struct Life {
    const graph::Node* value = nullptr;
    std::size_t made = 0;       // number of the piece
    std::size_t last_used = 0;  // kAlways: the caller holds it
    bool is_input = false;
  };
  static constexpr std::size_t kAlways = static_cast<std::size_t>(-1);

  void add(const graph::Node& value, std::size_t made, bool is_input);
  const Life& life_of(const graph::Node& value) const { return lives_[index_.at(&value)]; }
  template <class Condition>
  bool any_other(const graph::Node& value, Condition&& condition) const;

  const MemoryClasses& memory_;
  std::vector<Life> lives_;
  std::unordered_map<const graph::Node*, std::size_t> index_;
  std::unordered_map<std::size_t, std::vector<std::size_t>> by_class_;
};

}  // namespace rehearse::compiler
