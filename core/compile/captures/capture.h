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

// How the leaves of a call stand in its capture: what varies is a symbol, whose hint is given.
struct LeafShape {
  std::vector<std::int64_t> sizes;
  std::vector<bool> varies;                  // each size
  std::vector<std::int32_t> symbols = {};    // numbers of those that an earlier capture had here; -1: none
  std::optional<std::int64_t> symbolic_int;  // a symbolic integer that varies
  bool operator==(const LeafShape&) const = default;
};

// What one run of the user's code on fakes gave. Of one that ended early: no module, and why, or no reason where a read
// has ended it.
struct Capture {
  std::string refusal;
  bool keeps_tensors = false;  // why it ended: a tensor is kept beside the results, as where a cache is filled
  // Fakes of results that the code has elsewhere, too, and which results: of a capture that did not end early.
  std::vector<std::pair<capture::WeakTensor, std::size_t>> kept_results;
  std::optional<CallResult> served;  // what the call gave, where the code has run segment by segment or to its end
  std::shared_ptr<graph::GraphModule> module;
  std::shared_ptr<shapes::ShapeEnv> shapes;
  std::vector<InputBinding> inputs;
  std::vector<std::string> input_names;
  GuardSet guards;
  std::vector<LeafShape> shape;
  std::vector<std::string> constants;  // of the result
  std::shared_ptr<const void> frame;
  std::vector<capture::Remark> remarks;
  std::vector<std::string> kept_by_reference;
  std::optional<parallel::DdpBuckets> ddp;  // of a data-parallel module whose forward the code itself ran
};

// Whether they are captures of the same code: the same graph on the same inputs. The arguments of both pass the same
// guards, which hold all that the graph needs to know of their forms.
bool same_function(const Capture& a, const Capture& b);

}  // namespace rehearse::compiler
