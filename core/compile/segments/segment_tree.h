// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <rehearse/capture/segments.h>
#include <rehearse/compile/backend.h>
#include <rehearse/exec/call_site.h>
#include <rehearse/shapes/condition.h>

#include "compile/arguments/input_binding.h"
#include "compile/guards/guard_set.h"
#include "compile/partitions/border_check.h"

namespace rehearse::compiler {

// A compiled graph with its inputs.
struct BoundGraph {
  std::shared_ptr<const graph::GraphModule> module;
  std::uint64_t hash = 0;  // ignores the dtypes, sizes and strides of inputs, because guards check them
  std::vector<InputBinding> inputs;
  CompiledGraph run;
  BorderCheck border = {};  // checks the inputs, except parameters

  bool is_same(const BoundGraph& other) const { return hash == other.hash && inputs == other.inputs; }
};

struct Step;

// The step that follows if the read or the region gave this result.
struct Branch {
  std::string key;
  std::unique_ptr<Step> next;
};

// A segment and its end: a read, an eager region, or the function's results.
struct Step {
  BoundGraph segment;
  std::vector<shapes::Condition> asked = {};  // conditions on sizes that compiling the segment added

  std::optional<BoundGraph> read;                           // a graph of one operator
  std::shared_ptr<const capture::EagerRegion> region = {};  // runs on `region_inputs`
  std::vector<InputBinding> region_inputs = {};
  bool region_grad_enabled = true;
  exec::CallSite where = {};  // place of the read or region

  std::shared_ptr<const void> frame = {};  // CallResult::frame, if the function returns here
  std::vector<std::string> constants = {};

  std::vector<Branch> branches = {};
};

// The compiled step with that key; null if there is none.
Step* find_step(const std::vector<Branch>& branches, const std::string& key);
// True if a step with that key follows, compiled or not.
bool has_branch(const Step& step, const std::string& key);

// The segments of an entry for a function that reads data or has eager regions, as a tree. Several branches may have
// the same key and different graphs, but only with Verify::Always or guard collectives.
struct SegmentTree {
  std::vector<Branch> roots;     // their key is empty
  std::vector<GuardSet> guards;  // of all paths but the first. Entry::capture has those of the first
};

}  // namespace rehearse::compiler
