// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <rehearse/compile/backend.h>
#include <rehearse/compile/explanation.h>
#include <rehearse/graph/graph_module.h>

#include "compile/cache/compile_cache.h"
#include "compile/partitions/border_check.h"
#include "compile/partitions/example_inputs.h"
#include "compile/partitions/graph_dump.h"
#include "compile/partitions/memory_classes.h"
#include "compile/partitions/output_fit.h"
#include "compile/partitions/value_lives.h"

namespace rehearse::compiler {

// What compile() wants done beside compiling.
struct PieceOptions {
  bool check_backend = false;     // see CompileOptions
  GraphDump* dump = nullptr;      // null: nothing is written
  CompileCache* cache = nullptr;  // null: no graph is read or written
};

// A piece of a split graph, ready to be called where its border fits.
struct CompiledPiece {
  CompiledGraph::Run run;
  BorderCheck border = {};
};

// Has a back end compile graphs one after the other, and keeps account of how it lays out what goes from one into the
// next. A value lies as the back end says, if nobody but the pieces sees it and they can take it; else as recorded.
class PieceCompiler {
 public:
  // All must outlive it.
  PieceCompiler(const std::shared_ptr<shapes::ShapeEnv>& shapes, Backend& backend, const PieceOptions& options)
      : shapes_(shapes), backend_(backend), options_(options) {}

  // A graph that is in one piece.
  CompiledGraph::Run compile_whole(const std::shared_ptr<graph::GraphModule>& module, const InputMemory& inputs);
  // The pieces that a split graph calls, by name, in the order of the calls. Throws BackendMismatch for a false
  // statement, std::invalid_argument where the back end makes nothing, and what it throws.
  std::map<std::string, CompiledPiece> compile_pieces(const graph::GraphModule& split, const InputMemory& inputs);

  // Of the graphs that were compiled, in that order.
  std::vector<GraphExplanation> take_graphs() { return std::move(graphs_); }

 private:
  struct Made {
    CompiledGraph::Run run;
    std::vector<graph::ValueMeta> outputs;  // as they are stated
  };

  Made compile(BackendInput input, const std::vector<OutputRole>& roles);
  // By the back end, or from the cache.
  CompileCache::Made make(const BackendInput& input);
  CompiledPiece compile_call(const graph::Node& call, const std::shared_ptr<graph::GraphModule>& piece,
                             std::size_t number, const MemoryClasses& memory, const ValueLives& lives);
  BackendInput input_of(const std::shared_ptr<graph::GraphModule>& module, const std::string& name,
                        const MemoryClasses& memory, const std::vector<OutputRole>& roles, const OtherInputs& others);
  // Of the arguments of the call; empty where the piece must have them as recorded.
  OtherInputs other_inputs(const graph::Node& call, const graph::GraphModule& piece) const;
  void note_outputs(const std::vector<const graph::Node*>& values, const graph::GraphModule& piece,
                    const std::vector<graph::ValueMeta>& stated, const std::vector<OutputRole>& roles);

  const std::shared_ptr<shapes::ShapeEnv>& shapes_;
  Backend& backend_;
  const PieceOptions& options_;
  std::unordered_map<const graph::Node*, graph::TensorMeta> others_;  // values that lie otherwise than recorded
  std::vector<GraphExplanation> graphs_;
};

}  // namespace rehearse::compiler
