// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <rehearse/capture/segments.h>
#include <rehearse/compile/backend.h>
#include <rehearse/compile/explanation.h>

#include "compile/partitions/compile_partitions.h"
#include "compile/segments/segment_run.h"
#include "compile/segments/segment_tree.h"

namespace rehearse::compiler {

// The function whose segments a capture compiles, and the settings for compiling them.
struct SegmentOwner {
  std::string function;
  Backend& backend;
  Agreement& agreement;  // ranks may communicate before they compile a segment
  PartitionOptions parts = {};
  // Returns whether another path may be compiled. If not, the rest of the call runs eagerly.
  std::function<bool()> may_branch = [] { return true; };
  // Called when the code comes to its first read or eager region, and before code runs eagerly because it cannot be
  // captured. Compares what the ranks can do with the call, unless they have done so before (Agreement::compare()).
  std::function<Ability(Ability own)> compare_call = [](Ability own) { return own; };
  // The code runs although the tree may have its graphs (Verify::Always). So ranks compare what they can do with a
  // segment only after its code has run, and not before.
  bool compares_late = false;
  bool refuse_change = false;  // throws StaleCapture for a segment that differs from the tree
  bool is_whole = false;       // the function must be one graph (fullgraph)
};

// A call whose code runs under the tracer. Looks up each segment in the tree, or compiles and adds it, and runs it at
// once. If the code runs again for the same call, it repeats the steps that the call has passed. The capture does not
// run these steps again: it compares them with the tree, and gives the code the values from before.
class SegmentedCapture final : public capture::SegmentListener {
 public:
  // `run`: the steps that this call has passed; empty for a new call.
  SegmentedCapture(SegmentTree& tree, SegmentOwner owner, SegmentRun& run);

  // Ends the capture after the last step that the call has passed, or after the first step of a new call. The rest of
  // the code runs eagerly.
  void stop_after_passed() { stop_ = true; }
  // Like stop_after_passed(). Call it if the tracer has refused the code behind that step; errors then say so.
  void stop_before_refused() { stop_ = is_refused_ = true; }

  // `leaves`: the numbers that the capture gave to the call's tensors and integers. Call this once, before the code
  // runs.
  void bind(std::shared_ptr<shapes::ShapeEnv> shapes, const CapturedLeaves& leaves);
  // See SegmentListener::is_of_this_call().
  void set_objects_of_call(std::function<bool(const void*)> is_of_call) { is_of_call_ = std::move(is_of_call); }

  capture::SegmentAnswer on_read(capture::SegmentEnd end) override;
  capture::SegmentAnswer on_region(capture::SegmentEnd end,
                                   const std::shared_ptr<const capture::EagerRegion>& region) override;
  // Ends the capture: runs the unfinished segment operator by operator. Gives no answer in a verification, and while
  // the code repeats steps that the call has passed.
  capture::SegmentAnswer on_refusal(capture::SegmentEnd end, const std::string& why) override;
  bool expects_whole() const override { return owner_.is_whole; }
  bool is_of_this_call(const void* object) const override { return is_of_call_(object); }
  capture::SegmentAnswer run_unfinished(const capture::SegmentEnd& end);
  // Runs the last segment and returns the results of the call.
  std::vector<c10::IValue> finish(const capture::Segment& segment, std::vector<std::string> constants,
                                  std::shared_ptr<const void> frame);

  // Tells the other ranks that this one runs the rest of the call eagerly, unless the ranks have already compared what
  // they can do with it.
  void compare_refusal();

  // Throws the error for code that has returned without a read or an eager region although the tree begins with one.
  [[noreturn]] void throw_no_end(const graph::GraphModule& now) const;

  // True if the code came to a read or an eager region.
  bool was_cut() const noexcept { return was_cut_; }
  // True if the rest of the code ran eagerly.
  bool has_ended() const noexcept { return ended_; }
  // True if a segment was compiled.
  bool made_path() const noexcept { return !made_.empty(); }
  std::vector<GraphExplanation> take_made() { return std::move(made_); }
  // A function that gets the number of a value, and returns the value if its segment has run, else None. Empty if
  // is_broken().
  std::function<c10::IValue(std::size_t number)> find_value() const;
  // True if code that the listener ran threw an error. Its effects are then unknown.
  bool is_broken() const noexcept { return broken_; }

 private:
  std::vector<Branch>& branches();
  Step& enter(Step step);
  void compile(Step& step, const capture::Segment& segment);
  ShardedInputs sharded_inputs_of(const capture::Segment& segment) const;
  void ask_again(const Step& step) const;
  capture::SegmentAnswer answer(Step found, const capture::SegmentEnd& end);
  capture::SegmentAnswer end_with_values();
  void compare(const Step& step);
  void compare_next();
  std::optional<BoundGraph> eager_twin_of(const Step& step) const;
  bool may_go_on(const std::string& key) const;
  void begin_next(const PassedStep& passed);
  [[noreturn]] void throw_not_repeatable(const std::string& difference) const;
  BoundGraph bound(const capture::Segment& segment) const;
  InputBinding input_of(const capture::Segment::Source& source) const;

  SegmentTree& tree_;
  SegmentOwner owner_;
  SegmentRun& run_;
  std::shared_ptr<shapes::ShapeEnv> shapes_;
  const CapturedLeaves* leaves_ = nullptr;
  std::function<bool(const void*)> is_of_call_ = [](const void*) { return false; };
  std::size_t answered_ = 0;  // how many of run_.passed() the code has come to; all of them unless it repeats steps
  Step* last_ = nullptr;      // the last step that the code has come to; null: none
  std::vector<GraphExplanation> made_;
  bool was_cut_ = false;
  bool stop_ = false;
  bool is_refused_ = false;
  bool ended_ = false;
  bool broken_ = false;  // see is_broken(); also true while a step runs
};

// One call that runs the user's code segment by segment.
struct Segmented {
  std::shared_ptr<SegmentTree> tree;
  SegmentRun& run;
  SegmentOwner owner;
  SegmentedCapture capture{*tree, owner, run};
};

}  // namespace rehearse::compiler
