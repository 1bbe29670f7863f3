// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/ivalue.h>

#include <rehearse/graph/graph_module.h>

#include "compile/partitions/piece_compiler.h"

namespace rehearse::compiler {

// Runs a graph that consists only of calls of compiled pieces, as graph::split_by() makes it. Drops each value after
// its last use. Several fibers may run it at once.
class PartitionedGraph {
 public:
  // `pieces`: one for each submodule that the graph calls, by name. Throws graph::GraphError for a node that is not a
  // placeholder, attribute, call, item of a call, or output, and for a call without a compiled piece.
  PartitionedGraph(const graph::GraphModule& module, std::map<std::string, CompiledPiece> pieces);

  // Throws BorderMismatch if an input of a piece fails its border check (BorderCheck::fit()). If a border check copies
  // a tensor, the copy replaces the tensor for later pieces.
  std::vector<c10::IValue> run(std::vector<c10::IValue> inputs) const;

 private:
  // A slot in the array of values, or a constant.
  struct Operand {
    std::size_t slot = kConstant;
    bool last_use = false;
    c10::IValue constant = {};
  };
  struct Call {
    CompiledPiece piece = {};
    std::vector<Operand> inputs = {};
    std::size_t first_output = 0;
    std::size_t outputs = 0;
  };
  static constexpr std::size_t kConstant = static_cast<std::size_t>(-1);

  void add_call(const graph::Node& node, std::map<std::string, CompiledPiece>& pieces);
  Operand operand(const graph::Argument& argument, const graph::Node& user) const;
  void mark_last_uses();
  static c10::IValue take(const Operand& operand, std::vector<c10::IValue>& slots);

  std::map<const graph::Node*, std::size_t> slot_of_;  // only used during construction
  std::vector<c10::IValue> attributes_;                // initial values of the slots
  std::vector<Call> calls_;
  std::vector<Operand> results_;
  std::size_t inputs_ = 0;
};

}  // namespace rehearse::compiler
