// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <rehearse/capture/captured_graph.h>
#include <rehearse/compile/user_code.h>
#include <rehearse/graph/graph_module.h>
#include <rehearse/parallel/active_ddp.h>
#include <rehearse_internal/capture/left_fakes.h>

#include "compile/arguments/input_binding.h"
#include "compile/guards/guard_set.h"

namespace rehearse::compiler {

// How a capture represents a leaf of its call. `sizes` has the sizes in this call; sizes that vary become symbols.
struct LeafShape {
  std::vector<std::int64_t> sizes;
  std::vector<bool> varies;                  // for each size
  std::vector<std::int32_t> symbols = {};    // numbers of the symbols, which later captures use again; -1: none
  std::optional<std::int64_t> symbolic_int;  // the value of an integer that becomes a symbol
  bool operator==(const LeafShape&) const = default;
};

// The result of running the user's code on fakes once. If the capture ended early, `module` is null, and `refusal` says
// why. If a read or an eager region ended the capture, `refusal` is empty.
struct Capture {
  std::string refusal;
  // After the call, the code still holds a tensor, perhaps one of its results, in a member, a global or the like.
  // `refusal` says so, even if the capture did not end early.
  bool keeps_tensors = false;
  // Fakes of results that the code also keeps elsewhere, with the positions of these results. Empty if the capture
  // ended early.
  std::vector<std::pair<capture::WeakTensor, std::size_t>> kept_results;
  std::optional<CallResult> served;  // the call's results, if its code ran in segments or partly on real tensors
  std::shared_ptr<graph::GraphModule> module;
  std::shared_ptr<shapes::ShapeEnv> shapes;
  std::vector<InputBinding> inputs;
  std::vector<std::string> input_names;
  GuardSet guards;
  std::vector<LeafShape> shape;
  std::vector<std::string> constants;  // constants in the result
  std::shared_ptr<const void> frame;
  std::vector<capture::Remark> remarks;
  std::vector<std::string> kept_by_reference;
  std::optional<parallel::DdpBuckets> ddp;  // for a data-parallel module whose forward the captured code ran
};

// True if both captures have the same graph on the same inputs, and the same constants in the result. Does not compare
// the metadata of the inputs, because both calls passed the same guards.
bool same_function(const Capture& a, const Capture& b);

}  // namespace rehearse::compiler
