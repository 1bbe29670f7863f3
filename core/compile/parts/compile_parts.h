// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <rehearse/compile/backend.h>
#include <rehearse/compile/explanation.h>
#include <rehearse/graph/graph_module.h>
#include <rehearse/parallel/active_ddp.h>

#include "compile/parts/memory_classes.h"

namespace rehearse::compiler {

struct CompiledParts {
  CompiledGraph run;
  std::vector<GraphExplanation> graphs;
  std::string bucket_table;
  std::vector<std::string> warnings;
  bool communicates = false;  // it has collectives
};

// Has `backend` compile a forward graph: as one, or with `buckets` in the pieces that end where DDP's gradient buckets
// do, as PyTorch's DDPOptimizer. Each piece gets fakes and symbols of `shapes` as the nodes' metadata have them; those
// of inputs that lie in the same memory share it.
CompiledParts compile_parts(const std::shared_ptr<graph::GraphModule>& module,
                            const std::shared_ptr<shapes::ShapeEnv>& shapes, Backend& backend,
                            const parallel::DdpBuckets* buckets, const InputMemory& input_memory = {});

// Lets the virtual time pass that it takes to compile them.
void pass_compile_time_of(const std::vector<GraphExplanation>& graphs);

}  // namespace rehearse::compiler
