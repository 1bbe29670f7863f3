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

// What compile() has done so far, in numbers; of the calling rank.
struct CompileStats {
  std::int64_t calls = 0;
  std::int64_t hits = 0;
  std::int64_t compiles = 0;  // entries made
  std::int64_t compiles_in_last_call = 0;
  std::int64_t graphs = 0;       // given to the back end
  std::int64_t eager_calls = 0;  // beyond the limit, or refused
  std::int64_t verifications = 0;
  std::int64_t cache_hits = 0;  // graphs, see CacheUse
  std::int64_t cache_misses = 0;
  std::int64_t cache_bypasses = 0;
};

// What CompileOptions::cache_dir was for a graph. Off: it names no folder. Hit: the graph was read from there. Miss: it
// was not there, or not as it should be, and was compiled and written. Bypass: it was compiled, and cannot be written.
enum class CacheUse { Off, Hit, Miss, Bypass };

// One graph that the back end got.
struct GraphExplanation {
  std::string name = {};                     // "forward", "submod_1"
  std::size_t nodes = 0;                     // without placeholders and output
  std::int64_t bucket_bytes = 0;             // of the DDP bucket or FSDP unit that it is; 0 without a split
  std::vector<std::string> parameters = {};  // of that bucket, or those of the unit that it uses
  std::string reason = {};                   // why it ends where it does; empty without a split
  std::string eager_because = {};            // why it runs under eager autograd after all, where the back end says so
  CacheUse cache = CacheUse::Off;
  std::string cache_reason = {};                          // of a miss or a bypass
  std::shared_ptr<const graph::GraphModule> module = {};  // the graph itself
};

// One entry of the cache.
struct EntryExplanation {
  std::vector<GraphExplanation> graphs = {};
  std::string bucket_table = {};                 // for people; empty without a split
  std::vector<std::string> split_warnings = {};  // why there are fewer cuts than bucket sizes ask for
  std::vector<std::string> guards = {};          // on symbols, with the lines that they come from
  std::vector<std::string> remarks = {};         // specialisations and assumptions, with lines
  std::vector<std::string> kept_by_reference =
      {};  // tensors that are the capture's own: neither argument nor of the module
};

// A call that no entry served.
struct Recompile {
  std::int64_t call = 0;                    // counted from 1
  std::vector<GuardFailure> failures = {};  // of each entry the first guard that did not hold, latest entry first
};

// One graph as text.
struct PieceText {
  std::size_t entry = 0;  // of the cache
  std::string name;       // "forward", "submod_1"
  std::string text;       // as graph::to_text() gives it
};

// What torch._dynamo.explain() and TORCH_LOGS=recompiles tell.
struct Explanation {
  std::string function;
  CompileStats stats;
  std::vector<EntryExplanation> entries;  // oldest first
  std::vector<Recompile> recompiles;
  std::string refusal;                      // why the function runs as it is; empty when it does not
  std::vector<std::string> cache_warnings;  // files of CompileOptions::cache_dir that could not be read or written

  // The reasons of all graphs' ends: one for each graph of a split by buckets, each naming DDPOptimizer, for each graph
  // in front of a unit of FullyShardedDataParallel, and in front of a tensor that the function tells to require grad.
  std::vector<std::string> break_reasons() const;
  // All graphs that the back end got, with the metadata of all nodes; oldest first.
  std::vector<PieceText> pieces() const;
  std::string text() const;
};

}  // namespace rehearse::compiler
