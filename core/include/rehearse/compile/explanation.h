// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <rehearse/compile/guard_failure.h>
#include <rehearse/graph/graph_module.h>

namespace rehearse::compiler {

// What compile() has done so far for the calling rank, in numbers.
struct CompileStats {
  std::int64_t calls = 0;
  std::int64_t hits = 0;
  std::int64_t compiles = 0;  // entries made, and paths added to entries with segments
  std::int64_t compiles_in_last_call = 0;
  std::int64_t graphs = 0;       // in EntryExplanation::graphs
  std::int64_t eager_calls = 0;  // because of the limit, or because the code was refused
  std::int64_t verifications = 0;
  std::int64_t cache_hits = 0;  // counts graphs; see CacheUse
  std::int64_t cache_misses = 0;
  std::int64_t cache_bypasses = 0;
};

// What happened to a graph in CompileOptions::cache_dir. Off: there is no folder. Hit: the graph was read from it.
// Miss: the graph's file was missing or unusable, or the oracle chose not to use it (ChoiceKind::compile_cache), so the
// graph was compiled. It is then written; if that fails, Explanation::cache_warnings says so. Bypass: the graph was
// compiled and cannot be written.
enum class CacheUse { Off, Hit, Miss, Bypass };

// One graph of an entry. The back end got it, unless code in it forces the graph to run eagerly.
struct GraphExplanation {
  std::string name = {};                     // "forward", "submod_1"
  std::size_t nodes = 0;                     // without placeholders, attributes and output
  std::int64_t bucket_bytes = 0;             // size of its DDP bucket or FSDP unit; 0 without a split
  std::vector<std::string> parameters = {};  // the bucket's parameters, or those of the FSDP unit
  std::string reason = {};                   // why it ends where it does; see Explanation::break_reasons()
  std::string eager_because = {};            // why it runs under eager autograd; empty if it does not
  CacheUse cache = CacheUse::Off;
  std::string cache_reason = {};                          // for a miss or a bypass
  std::shared_ptr<const graph::GraphModule> module = {};  // the graph itself
};

// One entry of the cache.
struct EntryExplanation {
  std::vector<GraphExplanation> graphs = {};
  std::string bucket_table = {};                 // text for people; empty if there are no buckets
  std::vector<std::string> split_warnings = {};  // why there are fewer cuts than bucket sizes ask for
  std::vector<std::string> guards = {};          // conditions on symbols, with the lines that they come from
  std::vector<std::string> remarks = {};         // specialisations and assumptions, with lines
  std::vector<std::string> kept_by_reference =
      {};  // tensors that the capture owns: they are neither arguments nor the module's
};

// A call that no entry served, because none fits or because, with guard collectives, another rank had to compile.
struct Recompile {
  std::int64_t call = 0;                    // counted from 1
  std::vector<GuardFailure> failures = {};  // for each entry that does not fit what failed first, latest entry first
};

// One graph as text.
struct PieceText {
  std::size_t entry = 0;  // index in the cache
  std::string name;       // "forward", "submod_1"
  std::string text;       // from graph::to_text()
};

// The information of torch._dynamo.explain() and TORCH_LOGS=recompiles.
struct Explanation {
  std::string function;
  CompileStats stats;
  std::vector<EntryExplanation> entries;  // oldest first
  std::vector<Recompile> recompiles;
  std::string refusal;                      // why the function runs eagerly; empty if it does not
  std::vector<std::string> cache_warnings;  // files of CompileOptions::cache_dir that could not be read or written

  // Why graphs end where they do: one reason for each graph of a split by buckets (the reason names DDPOptimizer), for
  // each graph that ends before a unit of FullyShardedDataParallel, and for each that ends before the function makes a
  // tensor require grad.
  std::vector<std::string> break_reasons() const;
  // The graphs of all entries, oldest first, with the metadata of all nodes.
  std::vector<PieceText> pieces() const;
  std::string text() const;
};

}  // namespace rehearse::compiler
