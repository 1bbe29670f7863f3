// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <ATen/core/ivalue.h>

#include <rehearse/compile/backend.h>
#include <rehearse/compile/explanation.h>
#include <rehearse/graph/graph_module.h>
#include <rehearse_internal/shapes/shape_env.h>

#include "compile/cache/compile_cache.h"
#include "compile/partitions/border_check.h"
#include "compile/partitions/graph_dump.h"
#include "compile/partitions/memory_classes.h"
#include "compile/partitions/output_fit.h"

namespace rehearse::compiler {

// Metadata of a piece's inputs whose layout differs from the recorded one, by position of the placeholder.
using OtherInputs = std::map<std::size_t, graph::TensorMeta>;

struct PieceOptions {
  bool check_backend = false;     // from CompileOptions
  GraphDump* dump = nullptr;      // null: writes nothing
  CompileCache* cache = nullptr;  // null: neither reads nor writes stored graphs
};

// A compiled piece of a split graph, and the check of the inputs that it gets from other pieces.
struct CompiledPiece {
  CompiledGraph::Run run;
  BorderCheck border = {};
};

// Has a back end compile graphs in order, and tracks the layouts of values between them. A value has the layout that
// the back end states if only the pieces see the value and they accept that layout; otherwise it has the recorded
// layout.
class PieceCompiler {
 public:
  // All arguments must outlive this object.
  PieceCompiler(const std::shared_ptr<shapes::ShapeEnv>& shapes, Backend& backend, const PieceOptions& options)
      : shapes_(shapes), backend_(backend), options_(options) {}

  CompiledGraph::Run compile_whole(const std::shared_ptr<graph::GraphModule>& module, const InputMemory& inputs);
  // Compiles the pieces that a split graph calls, in the order of the calls, and returns them by name. Throws
  // BackendMismatch for a false statement of the back end, std::invalid_argument if the back end returns nothing, and
  // what the back end throws.
  std::map<std::string, CompiledPiece> compile_pieces(const graph::GraphModule& split, const InputMemory& inputs);

  std::vector<GraphExplanation> take_graphs() { return std::move(graphs_); }

 private:
  struct Made {
    CompiledGraph::Run run;
    std::vector<graph::ValueMeta> outputs;  // as stated by the back end; without a statement, see outputs_of()
  };

  Made compile(BackendInput input, const std::vector<OutputRole>& roles);
  // Takes the graph from the cache, or has the back end compile it.
  CompileCache::Made make(const BackendInput& input);
  CompiledPiece compile_call(const graph::Node& call, const std::shared_ptr<graph::GraphModule>& piece,
                             std::size_t number, const MemoryClasses& memory, const ValueLives& lives);
  BackendInput input_of(const std::shared_ptr<graph::GraphModule>& module, const std::string& name,
                        const MemoryClasses& memory, const std::vector<OutputRole>& roles, const OtherInputs& others);
  // The arguments of the call whose layout differs from the recorded one.
  OtherInputs other_inputs(const graph::Node& call, const graph::GraphModule& piece) const;
  void note_outputs(const std::vector<const graph::Node*>& values, const graph::GraphModule& piece,
                    const std::vector<graph::ValueMeta>& stated, const std::vector<OutputRole>& roles);

  const std::shared_ptr<shapes::ShapeEnv>& shapes_;
  Backend& backend_;
  const PieceOptions& options_;
  std::unordered_map<const graph::Node*, graph::TensorMeta> others_;  // values with another layout than recorded
  std::vector<GraphExplanation> graphs_;
};

}  // namespace rehearse::compiler
