// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/ivalue.h>

#include <rehearse/compile/leaf.h>

#include "compile/compiler_collectives/agreement.h"
#include "compile/segments/segment_tree.h"

namespace rehearse::compiler {

// A step that a call has behind it.
struct PassedStep {
  Step* step;
  std::vector<c10::IValue> values;  // what was read, or the region's tensors
  std::shared_ptr<capture::RegionResult> result;
  std::string key;           // of the branch that follows
  bool all_compile = false;  // what follows, since another rank lacks it
};

// One call's way through a tree of segments, and the values that it has on the way.
class SegmentRun {
 public:
  // Sizes of the call's tensors count as they are now: a segment may change them in place.
  explicit SegmentRun(const LeafList& leaves);

  // Runs the segment: its results become values.
  void run_segment(const Step& step);
  // Runs what the segment ends with. The step is passed then.
  void run_end(Step& step);
  // Behind run_end(): ranks compare whether what follows is compiled, where they do so. Blocks then.
  void compare_next(Agreement& agreement);
  // The compiled step behind what is passed; null: it is to be compiled.
  Step* next(const SegmentTree& tree) const;
  std::vector<c10::IValue> run(const BoundGraph& graph);
  // The results of a segment that ends the function.
  std::vector<c10::IValue> run_last(const Step& step) { return run(step.segment); }

  const std::vector<PassedStep>& passed() const noexcept { return passed_; }
  c10::IValue value(const InputBinding& input) const;
  std::size_t values() const noexcept { return values_.size(); }
  // Whether a region has done to tensors what later segments cannot know: changed what they are, or given back
  // something that shares memory with others.
  bool is_entangled() const noexcept { return entangled_; }
  // Whether a segment has changed what a tensor of the caller's is: not its data, but whether it requires grad.
  bool changed_inputs() const noexcept { return changed_inputs_; }

 private:
  void run_region(Step& step);

  const LeafList& leaves_;
  std::vector<std::vector<std::int64_t>> sizes_;  // of each leaf that is a tensor and has them
  std::vector<c10::IValue> values_;
  std::vector<PassedStep> passed_;
  bool entangled_ = false;
  bool changed_inputs_ = false;
};

}  // namespace rehearse::compiler
