// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <rehearse/compile/backend.h>
#include <rehearse/compile/compile_options.h>
#include <rehearse/compile/user_code.h>
#include <rehearse/parallel/active_ddp.h>

#include "compile/arguments/dynamism.h"
#include "compile/cache/compile_cache.h"
#include "compile/captures/capture_call.h"
#include "compile/compiler_collectives/agreement.h"
#include "compile/entry.h"
#include "compile/partitions/compile_partitions.h"
#include "compile/partitions/graph_dump.h"

namespace rehearse::compiler {

// Everything that one rank keeps for one function.
struct RankCache {
  explicit RankCache(const CompileOptions& options)
      : dynamism(options.dynamic),
        backend(options.backend.get()),
        agreement(options),
        entries(options),
        dump(options),
        stored(options) {}

  Dynamism dynamism;
  std::shared_ptr<Backend> backend;
  Agreement agreement;
  EntryCache entries;
  GraphDump dump;
  CompileCache stored;
};

// An answer: run the graph of this entry on the call's leaves.
struct ByGraph {
  Entry* entry;
};
// An answer: run the function eagerly.
struct AsItIs {};
// A CallResult answers a call whose code has already run, for example in segments.
using Answer = std::variant<ByGraph, CallResult, AsItIs>;

// One call in progress, and its rank's cache.
struct Call {
  const CompileOptions& options;
  const std::shared_ptr<torch::nn::Module>& module;  // null for a function
  RankCache& cache;
  const LeafList& leaves;
  UserCode& code;
  GlobalState state;                      // at the start of the call
  std::vector<std::string> sources = {};  // names of the leaves; filled by view()

  CallView view();
  // See capture_call(). `segments`: null if reading data is an error.
  Capture capture(
      std::vector<LeafShape> shape, SegmentedCapture* segments,
      const BeforeRunningOnce& before_running_once = [](const std::string&, bool) {}) {
    return capture_call(view(), std::move(shape), code, segments, before_running_once);
  }
  // Runs the graph of a capture of this call, once and node by node.
  CallResult run(const Capture& captured) const;
  // Includes the units of the data parallelism around the call, and its buckets with CompileOptions::optimize_ddp.
  PartitionOptions parts() const;

  // `served`: the results, if the code has already run.
  Answer hit(Entry& entry, std::optional<CallResult> served = std::nullopt);
  Answer eager(std::optional<CallResult> served = std::nullopt);
};

// Has the back end compile a graph that was captured as a whole. Throws what the back end throws, and CompileError if
// the compilation fixes a size that was marked dynamic.
Entry compile_entry(Call& call, Capture captured);

}  // namespace rehearse::compiler
