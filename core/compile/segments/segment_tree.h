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
  std::uint64_t hash = 0;  // inputs may have any form: guards hold all that the graph needs to know of it
  std::vector<InputBinding> inputs;
  CompiledGraph run;
  BorderCheck border = {};  // of what an earlier segment gives

  bool is_same(const BoundGraph& other) const { return hash == other.hash && inputs == other.inputs; }
};

struct Branch;

// A segment and how it ends: by a read, by an eager region, or with the function's result.
struct Step {
  BoundGraph segment;
  std::vector<shapes::Condition> asked = {};  // of sizes, by whoever compiled the segment

  std::optional<BoundGraph> read;                           // one operator
  std::shared_ptr<const capture::EagerRegion> region = {};  // runs on these inputs
  std::vector<InputBinding> region_inputs = {};
  bool region_grad_enabled = true;
  exec::CallSite where = {};  // of the read or the region

  std::shared_ptr<const void> frame = {};  // of the result
  std::vector<std::string> constants = {};

  std::vector<Branch> branches = {};
};

// What follows when the read gave this value, or the region such tensors.
struct Branch {
  std::string key;
  std::unique_ptr<Step> next;
};

// The compiled step of that key; null: there is none.
Step* find_step(const std::vector<Branch>& branches, const std::string& key);

// What one entry of the cache has for a function that reads data: a tree of segments. Several branches of one key
// differ in their graphs (only with Verify::Always).
struct SegmentTree {
  std::vector<Branch> roots;     // their key is empty
  std::vector<GuardSet> guards;  // of the paths behind the first, whose guards are the entry's own
};

}  // namespace rehearse::compiler
