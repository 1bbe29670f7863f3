// SPDX-License-Identifier: BSD-3-Clause
#include "compile/partitions/compile_partitions.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <rehearse/parallel/bucket_splitter.h>
#include <rehearse_internal/graph/dead_code.h>

#include "compile/aot/captured_hooks.h"
#include "compile/aot/eager_only.h"
#include "compile/compiler_collectives/compile_time.h"
#include "compile/partitions/eager_backend.h"
#include "compile/partitions/leaf_cuts.h"
#include "compile/partitions/memory_classes.h"
#include "compile/partitions/partitioned_graph.h"
#include "compile/partitions/piece_compiler.h"
#include "graph/run/call/communication.h"

namespace rehearse::compiler {
namespace {

// c10d's constant for the size of the first bucket. PyTorch's DDPOptimizer uses it, too.
constexpr std::int64_t kFirstBucketBytes = 1024 * 1024;

// PyTorch's DDPOptimizer uses fx's order. In that order, a piece may run before an earlier piece of the program if it
// does not depend on that piece. If pieces write to tensors or draw random numbers, that changes results, so graphs
// with effects need the program's order.
graph::PartitionOrder order_of_pieces(const graph::GraphModule& module) {
  return graph::has_effects(module) ? graph::PartitionOrder::Program : graph::PartitionOrder::Fx;
}

parallel::BucketSplitterOptions splitter_options(const parallel::DdpBuckets& buckets,
                                                 const graph::GraphModule& module) {
  const std::int64_t cap = buckets.bucket_bytes_cap;
  return {.bucket_bytes_cap = cap,
          .first_bucket_bytes_cap = std::min(cap, kFirstBucketBytes),
          .rules = {},
          .order = order_of_pieces(module),
          .keep_items_together = true,
          .bucket_bytes_caps = buckets.caps};
}

// `index` counts buckets from the beginning of the graph. The caps are in DDP's order, from the end of the graph.
std::int64_t cap_of_bucket(const parallel::DdpBuckets& buckets, std::size_t index, std::size_t count) {
  if (buckets.caps.empty()) return buckets.bucket_bytes_cap;
  return buckets.caps[std::min(count - 1 - index, buckets.caps.size() - 1)];
}

std::string reason_of(const parallel::ForwardBucket& bucket, std::size_t index, std::int64_t cap) {
  return fmt::format("DDPOptimizer: bucket {} holds {} bytes of {} parameters, of {} that fill one{}", index,
                     bucket.bytes, bucket.parameters.size(), cap, index == 0 ? " (the graph begins here)" : "");
}

// The reason why the graph must run eagerly; empty if the back end may compile it.
std::string why_eager(const graph::GraphModule& module) {
  // If the call runs under no_grad, back ends record no backward.
  if (!at::GradMode::is_enabled() && graph::enables_gradients(module))
    return "gradients are off in the call, and the code switches them on";
  if (makes_leaf(module) && asks_for_version(module))
    return "it makes a leaf, and asks for the version of a tensor, which pieces do not count";
  if (hook_of_input(module) != nullptr) return "it registers a hook on a tensor from outside";
  return "";
}

// The first hook that a piece registers on a tensor of another piece.
const graph::Node* hook_apart(const graph::GraphModule& pieces) {
  for (const auto& [name, piece] : pieces.submodules()) {
    if (const graph::Node* const hook = hook_of_input(*piece)) return hook;
  }
  return nullptr;
}

// A graph in pieces, and the first piece of each bucket.
struct Pieces {
  std::shared_ptr<graph::GraphModule> module;  // null: the graph is not split
  std::vector<std::string> of_bucket;
};

Pieces cut(const graph::GraphModule& module, const std::vector<parallel::ForwardBucket>& buckets) {
  LeafCuts cuts = cut_at_leaves(module, buckets);
  return {std::move(cuts.module), std::move(cuts.piece_of_bucket)};
}

Pieces pieces_of(const graph::GraphModule& module, const parallel::BucketSplit& split, bool has_leaf) {
  if (has_leaf) return cut(module, split.buckets);
  if (!split.was_split()) return {};
  Pieces pieces{split.module, {}};
  for (std::size_t i = 0; i < split.buckets.size(); ++i) pieces.of_bucket.push_back(fmt::format("submod_{}", i));
  return pieces;
}

Pieces pieces_of(const graph::GraphModule& module, const std::vector<UnitPiece>& units, bool has_leaf) {
  if (units.size() <= 1 && !has_leaf) return {};
  std::vector<parallel::ForwardBucket> buckets;
  for (const UnitPiece& each : units) buckets.push_back(each.bucket);
  return cut(module, buckets);
}

void explain_buckets(const parallel::BucketSplit& split, const std::vector<std::string>& pieces,
                     const parallel::DdpBuckets& buckets, std::vector<GraphExplanation>& graphs) {
  for (std::size_t i = 0; i < split.buckets.size(); ++i) {
    const auto graph =
        std::ranges::find_if(graphs, [&](const GraphExplanation& each) { return each.name == pieces[i]; });
    if (graph == graphs.end()) continue;
    graph->bucket_bytes = split.buckets[i].bytes;
    graph->parameters = split.buckets[i].parameters;
    graph->reason = reason_of(split.buckets[i], i, cap_of_bucket(buckets, i, split.buckets.size()));
  }
}

// Puts the bytes and parameters of each unit into the explanation of the unit's first piece. The explanation of the
// piece before it gets the reason for the cut between the two.
void explain_units(const std::vector<UnitPiece>& units, const std::vector<std::string>& pieces,
                   const parallel::ShardedUnits& texts, std::vector<GraphExplanation>& graphs) {
  for (std::size_t i = 0; i < units.size(); ++i) {
    const auto graph =
        std::ranges::find_if(graphs, [&](const GraphExplanation& each) { return each.name == pieces[i]; });
    if (graph == graphs.end()) continue;
    graph->bucket_bytes = units[i].bucket.bytes;
    graph->parameters = units[i].bucket.parameters;
    if (i > 0 && graph != graphs.begin()) std::prev(graph)->reason = reason_of_cut(units[i], texts);
  }
}

struct Cut {
  Pieces pieces;
  parallel::BucketSplit by_buckets;
  std::vector<UnitPiece> units;
};

Cut cut_of(const std::shared_ptr<graph::GraphModule>& module, const PartitionOptions& options,
           const InputMemory& memory, const ShardedInputs& sharded, CompiledPartitions& parts) {
  Cut cut;
  // The version of a tensor counts all earlier changes. A piece does not know of changes in other pieces.
  if (asks_for_version(*module)) {
    const bool would_cut = options.buckets != nullptr || options.units != nullptr;
    if (would_cut) parts.warnings = {"the graph was not split: it asks for the version of a tensor"};
    return cut;
  }
  if (options.units != nullptr) {
    cut.units = pieces_by_unit(*module, sharded, MemoryClasses(*module, memory));
    cut.pieces = pieces_of(*module, cut.units, makes_leaf(*module));
    if (cut.units.size() > 1 && hook_apart(*cut.pieces.module) != nullptr) {
      cut.units = {};
      cut.pieces = pieces_of(*module, cut.units, makes_leaf(*module));
      parts.warnings = {"the graph was not split: a unit would end between a tensor and its hook"};
    }
    return cut;
  }
  if (options.buckets != nullptr) {
    cut.by_buckets = parallel::split_by_buckets(module, splitter_options(*options.buckets, *module));
    parts.bucket_table = parallel::bucket_table(cut.by_buckets.buckets);
    parts.warnings = cut.by_buckets.warnings;
    if (cut.by_buckets.was_split() && hook_apart(*cut.by_buckets.module) != nullptr) {
      cut.by_buckets = {};
      parts.bucket_table.clear();
      parts.warnings = {"the graph was not split: a bucket would end between a tensor and its hook"};
    }
  }
  cut.pieces = pieces_of(*module, cut.by_buckets, makes_leaf(*module));
  return cut;
}

}  // namespace

CompiledPartitions compile_partitions(const std::shared_ptr<graph::GraphModule>& module,
                                      const std::shared_ptr<shapes::ShapeEnv>& shapes, Backend& backend,
                                      const PartitionOptions& options, const InputMemory& input_memory,
                                      const ShardedInputs& sharded) {
  CompiledPartitions parts;
  EagerBackend eager;
  std::string eager_because = why_eager(*module);
  bool is_eager = !eager_because.empty();
  parts.communicates = std::ranges::any_of(module->graph(), graph::communicates);
  Cut cut;
  if (!is_eager) cut = cut_of(module, options, input_memory, sharded, parts);
  if (cut.pieces.module && hook_apart(*cut.pieces.module) != nullptr) {
    cut = {};
    is_eager = true;
    eager_because = "a leaf is made between a tensor and its hook";
  }
  PieceCompiler compiler(shapes, is_eager ? eager : backend, options.pieces);
  if (!cut.pieces.module) {
    parts.run = compiler.compile_whole(module, input_memory);
    parts.graphs = compiler.take_graphs();
    if (is_eager) parts.graphs.back().eager_because = eager_because;
    return parts;
  }
  const auto glue = std::make_shared<const PartitionedGraph>(*cut.pieces.module,
                                                             compiler.compile_pieces(*cut.pieces.module, input_memory));
  parts.graphs = compiler.take_graphs();
  if (cut.units.size() > 1) explain_units(cut.units, cut.pieces.of_bucket, *options.units, parts.graphs);
  if (cut.by_buckets.was_split()) {
    explain_buckets(cut.by_buckets, cut.pieces.of_bucket, *options.buckets, parts.graphs);
    parts.buckets = std::move(cut.by_buckets.buckets);
  }
  parts.run = [glue](std::vector<c10::IValue> inputs) { return glue->run(std::move(inputs)); };
  return parts;
}

void pass_compile_time_of(const std::vector<GraphExplanation>& graphs, CompileCache* cache) {
  std::size_t compiled = 0, read = 0;
  for (const GraphExplanation& graph : graphs) (graph.cache == CacheUse::Hit ? read : compiled) += graph.nodes;
  pass_compile_time(compiled);
  note_saved_compile_time(read);
  if (cache != nullptr) cache->write_compiled();
}

}  // namespace rehearse::compiler
