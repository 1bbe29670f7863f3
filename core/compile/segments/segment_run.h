// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/ivalue.h>

#include <rehearse/compile/leaf.h>

#include "compile/compiler_collectives/agreement.h"
#include "compile/segments/segment_tree.h"

namespace rehearse::compiler {

// A step that a call has passed: its segment and its read or region have run.
struct PassedStep {
  Step* step;
  std::vector<c10::IValue> values;  // the number that was read, or the region's tensors
  std::shared_ptr<capture::RegionResult> result;
  std::string key;           // key of the branch that follows
  bool all_compile = false;  // another rank has no branch for what follows, so all ranks compile it
};

// The path of one call through a tree of segments, and the values on it.
class SegmentRun {
 public:
  // Notes the current sizes of the call's tensors, because a segment may change these sizes in place.
  explicit SegmentRun(const LeafList& leaves);

  void run_segment(const BoundGraph& segment);
  // Runs the step's segment, in the form of `segment`, and the read or region at its end. The step has then passed. If
  // something throws, the other ranks learn in their next comparison that this rank compiles and serves no more of the
  // call.
  void run_step(Step& step, const BoundGraph& segment, Agreement& agreement);
  // With guard collectives, the ranks compare once after each step what they can do with the rest of the call, unless
  // they have agreed to run it eagerly. A rank calls one of these functions after run_step(). compare_next() compares
  // at once, and blocks. `may_compile`: whether what follows the step may be compiled. After owe_comparison(), the rank
  // compares when it knows which graph follows, by compare_owed().
  void compare_next(Agreement& agreement, const std::function<bool(const PassedStep&)>& may_compile);
  void owe_comparison(const Agreement& agreement);
  bool owes_comparison() const noexcept { return owes_comparison_; }
  // Blocks. Returns what all ranks can do.
  Ability compare_owed(Agreement& agreement, Ability own);
  // The ranks have agreed to run the rest of the call eagerly.
  void note_all_run_eagerly() noexcept { all_run_eagerly_ = true; }
  bool all_run_eagerly() const noexcept { return all_run_eagerly_; }
  // The compiled step that follows; null if it must be compiled.
  Step* next(const SegmentTree& tree) const;
  std::vector<c10::IValue> run(const BoundGraph& graph);
  // The results of a segment at whose end the function returns.
  std::vector<c10::IValue> run_last(const Step& step) { return run(step.segment); }

  const std::vector<PassedStep>& passed() const noexcept { return passed_; }
  c10::IValue value(const InputBinding& input) const;
  std::size_t values() const noexcept { return values_.size(); }
  // How many tensors there are among the first `count` values.
  std::int64_t tensors_before(std::size_t count) const;
  // True if a region did what later segments do not expect: changed requires_grad, the dtype, the sizes or the strides
  // of an argument, returned a tensor that shares memory with an argument or another result, or told so itself.
  bool is_entangled() const noexcept { return entangled_; }
  // True if the rest of the call must run eagerly.
  bool must_end() const noexcept { return entangled_ || all_run_eagerly_; }
  // True if a segment changed whether an argument, parameter or buffer requires grad.
  bool changed_inputs() const noexcept { return changed_inputs_; }
  // True if a segment or region changed the sizes of a tensor among the arguments. Then the code cannot run again from
  // its start: it would find other sizes.
  bool changed_sizes() const;

 private:
  void run_end(Step& step);
  void run_region(Step& step);

  const LeafList& leaves_;
  std::vector<std::vector<std::int64_t>> sizes_;  // for each tensor leaf with sizes
  std::vector<c10::IValue> values_;
  std::vector<PassedStep> passed_;
  bool entangled_ = false;
  bool all_run_eagerly_ = false;
  bool owes_comparison_ = false;
  bool changed_inputs_ = false;
};

}  // namespace rehearse::compiler
