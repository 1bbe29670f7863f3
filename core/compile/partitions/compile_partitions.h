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

// How a graph is to be compiled.
struct PartitionOptions {
  const parallel::DdpBuckets* buckets = nullptr;  // null: no bucket cuts it
  const parallel::ShardedUnits* units = nullptr;  // null: no unit cuts it
  PieceOptions pieces = {};
};

struct CompiledPartitions {
  CompiledGraph run;
  std::vector<GraphExplanation> graphs;
  std::vector<parallel::ForwardBucket>
      buckets;  // their nodes are those of the graph that was given; none without a cut
  std::string bucket_table;
  std::vector<std::string> warnings;
  bool communicates = false;  // it has collectives
};

// Has `backend` compile a forward graph: as one, or with buckets in the pieces that end where DDP's gradient buckets
// do, as PyTorch's DDPOptimizer, and inside of a sharded model's forward with a piece for each unit. No back end sees a
// node that makes a leaf of autograd: it is a piece of its own, and runs as it is. Pieces are compiled in the order in
// which they are called, each for what the back end states that those before it return: its fakes and symbols of
// `shapes` are else as the nodes' metadata have them; those of inputs that lie in the same memory share it. Results lie
// in memory as the graph has them. `sharded`: which inputs are parameters of a unit.
CompiledPartitions compile_partitions(const std::shared_ptr<graph::GraphModule>& module,
                                      const std::shared_ptr<shapes::ShapeEnv>& shapes, Backend& backend,
                                      const PartitionOptions& options, const InputMemory& input_memory = {},
                                      const ShardedInputs& sharded = {});

// Lets the virtual time pass that it takes to compile them. After that the cache, if there is one, writes them.
void pass_compile_time_of(const std::vector<GraphExplanation>& graphs, CompileCache* cache);

}  // namespace rehearse::compiler
