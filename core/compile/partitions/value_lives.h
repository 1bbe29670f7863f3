// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <unordered_map>
#include <vector>

#include <rehearse/graph/graph_module.h>

#include "compile/partitions/memory_classes.h"

namespace rehearse::compiler {

// When the values between the pieces of a split graph are made and used, by the numbers of the pieces in the order in
// which they are called, and which of them may share memory. In a graph that is not split, all is made and returned by
// the one piece #0.
class ValueLives {
 public:
  // Both must outlive it.
  ValueLives(const graph::GraphModule& split, const MemoryClasses& memory);

  // Whether something may share the value's memory that was there when it was made, and is used after that. So does an
  // input itself, which the caller has.
  bool shares_when_made(const graph::Node& value) const;
  // Whether something else than the value may share its memory at the call of piece #`piece`, and is used in that
  // call or later.
  bool shares_at(const graph::Node& value, std::size_t piece) const;
  // Whether the graph returns the value, or makes something later that may share its memory.
  bool leaves_or_is_shared(const graph::Node& value) const;

 private:
  struct Life {
    const graph::Node* value = nullptr;
    std::size_t made = 0;       // by which piece
    std::size_t last_used = 0;  // kAlways: the caller has it
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
