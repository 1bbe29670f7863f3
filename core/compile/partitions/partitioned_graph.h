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

// Runs a graph of which nothing is left but calls of compiled partitions, as graph::split_by() makes it. A value is
// dropped after its last use. May be run by several fibers at once.
class PartitionedGraph {
 public:
  // `pieces`: one for each submodule that the graph calls, by name. Throws graph::GraphError for a node that is no
  // placeholder, attribute, call, item of a call, or output.
  PartitionedGraph(const graph::GraphModule& module, std::map<std::string, CompiledPiece> pieces);

  // Throws BorderMismatch when a tensor between the partitions is not what was recorded of it. One that a border copies
  // is that copy from then on.
  std::vector<c10::IValue> run(std::vector<c10::IValue> inputs) const;

 private:
  // A place for a value, or a value that is always the same.
  struct Operand {
    std::size_t place = kConstant;
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
  void add_output(const graph::Node& node);
  Operand operand(const graph::Argument& argument, const graph::Node& user) const;
  void mark_last_uses();
  static c10::IValue take(const Operand& operand, std::vector<c10::IValue>& places);

  std::map<const graph::Node*, std::size_t> place_of_;  // while it is made
  std::vector<c10::IValue> attributes_;                 // initial values of places
  std::vector<Call> calls_;
  std::vector<Operand> results_;
  std::size_t inputs_ = 0;
};

}  // namespace rehearse::compiler
