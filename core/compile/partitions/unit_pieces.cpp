// SPDX-License-Identifier: BSD-3-Clause
#include "compile/partitions/unit_pieces.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include <c10/core/ScalarType.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rehearse_internal/operators/storage_of.h>

namespace rehearse::compiler {
namespace {

using graph::Node;
using graph::Op;
using Units = std::vector<std::size_t>;

void add_once(Units& units, std::size_t unit) {
  if (std::ranges::find(units, unit) == units.end()) units.push_back(unit);
}

bool has_all(const Units& units, const Units& wanted) {
  return std::ranges::all_of(wanted, [&](std::size_t each) { return std::ranges::find(units, each) != units.end(); });
}

// The sizes of parameters are always numbers.
std::int64_t bytes_of(const Node& placeholder) {
  const graph::TensorMeta* const meta = placeholder.meta().tensor();
  if (meta == nullptr) return 0;
  auto bytes = static_cast<std::int64_t>(c10::elementSize(meta->dtype));
  for (const auto& size : meta->sizes) bytes *= size.is_symbolic() ? 0 : size.number();
  return bytes;
}

// Finds the units whose parameters each node of a graph uses.
class UnitUses {
 public:
  UnitUses(const graph::GraphModule& module, const ShardedInputs& inputs, const MemoryClasses& memory)
      : memory_(memory) {
    const auto placeholders = module.graph().placeholders();
    for (std::size_t i = 0; i < std::min(placeholders.size(), inputs.size()); ++i) {
      if (inputs[i] == nullptr) continue;
      parameters_.emplace(placeholders[i], inputs[i]);
      add_once(units_of_class_[memory.of(*placeholders[i])], inputs[i]->unit);
    }
  }

  Units of(const Node& node) const {
    Units units;
    for (const Node* input : node.input_nodes()) {
      const auto found = units_of_class_.find(memory_.of(*input));
      if (found == units_of_class_.end()) continue;
      for (const std::size_t unit : found->second) add_once(units, unit);
    }
    return units;
  }

  // Adds to the bucket the parameters that the node uses.
  void count(const Node& node, parallel::ForwardBucket& bucket) const {
    for (const Node* input : node.input_nodes()) {
      const auto found = parameters_.find(input);
      if (found == parameters_.end()) continue;
      const std::string& name = found->second->name;
      if (std::ranges::find(bucket.parameters, name) != bucket.parameters.end()) continue;
      bucket.parameters.push_back(name);
      bucket.bytes += bytes_of(*input);
    }
  }

 private:
  const MemoryClasses& memory_;
  std::unordered_map<const Node*, const parallel::ShardedUnits::Parameter*> parameters_;  // by placeholder
  std::unordered_map<std::size_t, Units> units_of_class_;
};

// True for nodes that begin no piece: placeholders, attributes, the output, and the items of a list. Items belong to
// the piece of the node that returned the list.
bool is_apart(const Node& node) {
  return node.op() == Op::Placeholder || node.op() == Op::GetAttr || node.op() == Op::Output ||
         (node.op() == Op::CallFunction && node.target() == "_operator.getitem");
}

}  // namespace

ShardedInputs sharded_inputs(const parallel::ShardedUnits* units, const std::vector<c10::IValue>& inputs) {
  ShardedInputs found;
  if (units == nullptr) return found;
  for (const c10::IValue& value : inputs) {
    const auto* const storage = value.isTensor() ? operators::storage_of(value.toTensor()) : nullptr;
    found.push_back(storage != nullptr ? units->find(storage) : nullptr);
  }
  return found;
}

std::vector<UnitPiece> pieces_by_unit(const graph::GraphModule& module, const ShardedInputs& inputs,
                                      const MemoryClasses& memory) {
  std::vector<UnitPiece> pieces;
  const UnitUses uses(module, inputs, memory);
  for (Node& node : module.graph()) {
    if (is_apart(node)) continue;
    Units units = uses.of(node);
    const bool begins = pieces.empty() || (!pieces.back().units.empty() && !has_all(pieces.back().units, units));
    if (begins) pieces.emplace_back();
    if (pieces.back().units.empty()) pieces.back().units = std::move(units);
    pieces.back().bucket.nodes.push_back(&node);
    uses.count(node, pieces.back().bucket);
  }
  return pieces;
}

std::string reason_of_cut(const UnitPiece& next, const parallel::ShardedUnits& units) {
  std::vector<std::string> texts;
  for (const std::size_t unit : next.units) texts.push_back(units.text_of(unit));
  return fmt::format("FSDP: {} {}", fmt::join(texts, " and "), texts.size() == 1 ? "begins" : "begin");
}

}  // namespace rehearse::compiler
