// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <ATen/core/ivalue.h>

#include <rehearse/graph/graph_module.h>
#include <rehearse/parallel/bucket_splitter.h>
#include <rehearse_internal/parallel/sharded_units.h>

#include "compile/partitions/memory_classes.h"

namespace rehearse::compiler {

// For each input of a graph, the sharded parameter in whose memory it lies; null if there is none.
using ShardedInputs = std::vector<const parallel::ShardedUnits::Parameter*>;

// `units`: null outside of a sharded model's forward.
ShardedInputs sharded_inputs(const parallel::ShardedUnits* units, const std::vector<c10::IValue>& inputs);

// A contiguous part of a graph that uses the parameters of these units and of no other units.
struct UnitPiece {
  std::vector<std::size_t> units;  // several if one node uses them all
  parallel::ForwardBucket bucket;  // its nodes and parameters
};

// Splits a graph where FullyShardedDataParallel's units begin. A node uses a unit if it takes a parameter of the unit,
// or a view of one. A new piece begins before a node that uses another unit than the preceding nodes of the current
// piece. Nodes that use no unit belong to the preceding piece. Returns at most one piece if the graph uses at most one
// unit.
std::vector<UnitPiece> pieces_by_unit(const graph::GraphModule& module, const ShardedInputs& inputs,
                                      const MemoryClasses& memory);

// Why the piece before `next` ends: "FSDP: unit \"blocks.1\" begins".
std::string reason_of_cut(const UnitPiece& next, const parallel::ShardedUnits& units);

}  // namespace rehearse::compiler
