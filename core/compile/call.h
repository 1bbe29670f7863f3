// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <rehearse/compile/compile_options.h>
#include <rehearse/compile/user_code.h>
#include <rehearse/parallel/active_ddp.h>

#include "compile/captures/capture_call.h"
#include "compile/partitions/compile_partitions.h"
#include "compile/rank_cache.h"

namespace rehearse::compiler {

// How a call is answered. The graph of an entry is still to be run on the call's leaves.
struct ByGraph {
  Entry* entry;
};
// The function is still to be run.
struct AsItIs {};
// CallResult: the code has run, piece by piece or as it is.
using Answer = std::variant<ByGraph, CallResult, AsItIs>;

// One call that is under way, and what its rank has for it.
struct Call {
  const CompileOptions& options;
  const std::shared_ptr<torch::nn::Module>& module;  // null for a function
  RankCache& cache;
  const LeafList& leaves;
  UserCode& code;
  GlobalState state;                      // where the call began
  std::vector<std::string> sources = {};  // of the leaves, from the first view() on

  CallView view();
  // As capture_call(). `segments`: null where a read of data is an error.
  Capture capture(std::vector<LeafShape> shape, SegmentedCapture* segments) {
    return capture_call(view(), std::move(shape), code, segments);
  }
  // How graphs are to be compiled now: split by the buckets of the data parallelism around the call, if there is any.
  PartitionOptions parts() const;

  // `served`: what the code gave where it has run already.
  Answer hit(Entry& entry, std::optional<CallResult> served = std::nullopt);
  Answer eager(std::optional<CallResult> served = std::nullopt);
};

}  // namespace rehearse::compiler
