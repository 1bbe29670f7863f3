// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <rehearse/compile/backend.h>
#include <rehearse/compile/explanation.h>
#include <rehearse/graph/graph_module.h>
#include <rehearse/parallel/active_ddp.h>
#include <rehearse/parallel/bucket_splitter.h>

#include "compile/partitions/memory_classes.h"
#include "compile/partitions/piece_compiler.h"
#include "compile/partitions/unit_pieces.h"

namespace rehearse::compiler {

struct PartitionOptions {
  const parallel::DdpBuckets* buckets = nullptr;  // null: no buckets
  const parallel::ShardedUnits* units = nullptr;  // null: no units
  PieceOptions pieces = {};
};

struct CompiledPartitions {
  CompiledGraph run;
  std::vector<GraphExplanation> graphs;
  std::vector<parallel::ForwardBucket> buckets;  // with nodes of the original graph; empty without a split
  std::string bucket_table;
  std::vector<std::string> warnings;
  bool communicates = false;  // the graph contains collectives
};

// Has `backend` compile a forward graph. Without buckets and units, the graph is compiled as a whole. With buckets, it
// is split where DDP's gradient buckets end, as by PyTorch's DDPOptimizer. With units (inside a sharded model's
// forward), it is split where units begin. A node that makes an autograd leaf is its own piece, which runs eagerly and
// which no back end sees. Some graphs run eagerly as a whole, for example if they register a hook on a tensor from
// outside; GraphExplanation::eager_because has the reason. A graph that asks for the version of a tensor is never
// split.
//
// Compiles pieces in the order in which they are called. The back end gets fakes for the inputs of a piece. A fake for
// the result of an earlier piece may have the layout that the back end has stated for this result (see PieceCompiler).
// Everything else in the fakes follows the metadata of the nodes, with the symbols of `shapes`. Two fakes share memory
// if the values that they stand for may share memory. The results of a call have the layouts that the graph's metadata
// records. `sharded`: which inputs are parameters of a unit.
CompiledPartitions compile_partitions(const std::shared_ptr<graph::GraphModule>& module,
                                      const std::shared_ptr<shapes::ShapeEnv>& shapes, Backend& backend,
                                      const PartitionOptions& options, const InputMemory& input_memory = {},
                                      const ShardedInputs& sharded = {});

// Advances virtual time by the time for compiling these graphs, except those that the cache had. Then lets the cache,
// if there is one, write the compiled graphs.
void pass_compile_time_of(const std::vector<GraphExplanation>& graphs, CompileCache* cache);

}  // namespace rehearse::compiler
