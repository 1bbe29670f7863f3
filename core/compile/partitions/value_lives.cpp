// SPDX-License-Identifier: BSD-3-Clause
#include "compile/partitions/value_lives.h"

#include <algorithm>

namespace rehearse::compiler {
namespace {

using graph::Node;
using graph::Op;

bool has_pieces(const graph::GraphModule& module) {
  return std::any_of(module.graph().begin(), module.graph().end(),
                     [](const Node& node) { return node.op() == Op::CallModule; });
}

}  // namespace

ValueLives::ValueLives(const graph::GraphModule& split, const MemoryClasses& memory) : memory_(memory) {
  const bool is_split = has_pieces(split);
  std::unordered_map<const Node*, std::size_t> piece_of;
  std::size_t pieces = 0;
  const auto use = [&](const Node& node, std::size_t at) {
    for (const Node* input : node.input_nodes()) {
      const auto life = index_.find(input);
      if (life != index_.end()) lives_[life->second].last_used = std::max(lives_[life->second].last_used, at);
    }
  };
  for (const Node& node : split.graph()) {
    if (node.op() == Op::Placeholder || node.op() == Op::GetAttr) {
      add(node, 0, true);
    } else if (node.op() == Op::Output) {
      use(node, kAlways);
    } else if (is_split && node.op() == Op::CallModule) {
      use(node, pieces);
      piece_of[&node] = pieces;
      add(node, pieces++, false);
    } else {
      const Node* of = is_split && !node.args().empty() ? node.args()[0].node() : nullptr;
      const auto piece = piece_of.find(of);
      add(node, piece != piece_of.end() ? piece->second : 0, false);
    }
  }
}

void ValueLives::add(const Node& value, std::size_t made, bool is_input) {
  index_[&value] = lives_.size();
  by_class_[memory_.of(value)].push_back(lives_.size());
  lives_.push_back({&value, made, is_input ? kAlways : made, is_input});
}

template <class Condition>
bool ValueLives::any_other(const Node& value, Condition&& condition) const {
  const auto others = by_class_.find(memory_.of(value));
  if (others == by_class_.end()) return false;
  return std::any_of(others->second.begin(), others->second.end(),
                     [&](std::size_t i) { return lives_[i].value != &value && condition(lives_[i]); });
}

bool ValueLives::shares_when_made(const Node& value) const {
  const Life& own = life_of(value);
  return own.is_input || any_other(value, [&](const Life& other) {
           return other.is_input || (other.made <= own.made && other.last_used > own.made);
         });
}

bool ValueLives::shares_at(const Node& value, std::size_t piece) const {
  return any_other(value, [&](const Life& other) {
    return other.is_input || (other.made < piece && other.last_used >= piece && other.last_used > other.made);
  });
}

bool ValueLives::leaves_or_is_shared(const Node& value) const {
  const Life& own = life_of(value);
  return own.last_used == kAlways || any_other(value, [&](const Life& other) { return other.made > own.made; });
}

}  // namespace rehearse::compiler
