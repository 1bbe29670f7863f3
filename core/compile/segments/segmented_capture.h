// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <rehearse/capture/segments.h>
#include <rehearse/compile/backend.h>
#include <rehearse/compile/explanation.h>

#include "compile/partitions/compile_partitions.h"
#include "compile/segments/segment_run.h"
#include "compile/segments/segment_tree.h"

namespace rehearse::compiler {

// The function and settings for which a capture of segments works.
struct SegmentOwner {
  std::string function;
  Backend& backend;
  Agreement& agreement;  // ranks may meet for the compilation of each segment
  PartitionOptions parts = {};
  // Returns whether another path may be compiled. If not, the rest of the call runs eagerly.
  std::function<bool()> may_branch = [] { return true; };
  std::function<void()> before_first_read = [] {};
  bool refuse_change = false;  // throws StaleCapture for a segment that differs from the tree
};

// A call whose code runs under the tracer. Looks up each segment in the tree, or compiles and adds it, and runs it at
// once. When the code runs again, steps that the call has already passed are compared with the tree, and answered
// without running them.
class SegmentedCapture final : public capture::SegmentListener {
 public:
  // `run`: what has run of this call; empty at first.
  SegmentedCapture(SegmentTree& tree, SegmentOwner owner, SegmentRun& run);

  // Ends the capture where the call has arrived; the rest runs eagerly.
  void stop_after_passed() { stop_ = true; }
  // Likewise, because the code after that place was refused.
  void stop_before_refused() { stop_ = is_refused_ = true; }

  // Sets the environment, and the capture's numbering of the call's tensors and integers.
  void bind(std::shared_ptr<shapes::ShapeEnv> shapes, const CapturedLeaves& leaves);

  capture::SegmentAnswer on_read(capture::SegmentEnd end) override;
  capture::SegmentAnswer on_region(capture::SegmentEnd end,
                                   const std::shared_ptr<const capture::EagerRegion>& region) override;
  // Runs what was recorded, operator by operator, if the call arrives there for the first time. Otherwise gives no
  // answer.
  capture::SegmentAnswer on_refusal(capture::SegmentEnd end, const std::string& why) override;
  capture::SegmentAnswer run_unfinished(const capture::SegmentEnd& end);
  // Runs the last segment and returns the results of the call.
  std::vector<c10::IValue> finish(const capture::Segment& segment, std::vector<std::string> constants,
                                  std::shared_ptr<const void> frame);

  // Throws for code that came to its end without a read, and therefore differs from before.
  [[noreturn]] void throw_no_end(const graph::GraphModule& now) const;

  bool was_cut() const noexcept { return was_cut_; }
  // True if the rest of the code ran eagerly.
  bool has_ended() const noexcept { return ended_; }
  // True if a branch was added to the tree.
  bool made_path() const noexcept { return !made_.empty(); }
  std::vector<GraphExplanation> take_made() { return std::move(made_); }
  // A function that returns the values of segments that have run, and None for other numbers. Empty if a segment threw.
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
  bool may_go_on(const std::string& key) const;
  void begin_next(const PassedStep& passed);
  [[noreturn]] void throw_not_repeatable(const std::string& told) const;
  BoundGraph bound(const capture::Segment& segment) const;
  InputBinding input_of(const capture::Segment::Source& source) const;

  SegmentTree& tree_;
  SegmentOwner owner_;
  SegmentRun& run_;
  std::shared_ptr<shapes::ShapeEnv> shapes_;
  const CapturedLeaves* leaves_ = nullptr;
  std::size_t answered_ = 0;  // number of passed steps that were answered
  Step* last_ = nullptr;
  std::vector<GraphExplanation> made_;
  bool was_cut_ = false;
  bool stop_ = false;
  bool is_refused_ = false;
  bool ended_ = false;
  bool broken_ = false;
};

}  // namespace rehearse::compiler
