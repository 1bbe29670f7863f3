// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <rehearse/capture/segments.h>
#include <rehearse_internal/capture/left_fakes.h>

#include "capture/trace/operators/treatment.h"
#include "capture/trace/recorders/caller_state.h"
#include "capture/trace/recorders/collective_recorder.h"
#include "capture/trace/recording/recording.h"

namespace rehearse::capture {

// Ends segments: takes what was recorded since the last one, with all that the code holds where it ends.
class SegmentRecorder {
 public:
  SegmentRecorder(Recording& recording, CollectiveRecorder& collectives, const CallerState& caller)
      : recording_(recording), collectives_(collectives), caller_(caller) {}

  // At an operator that reads data; the next segment begins behind it.
  SegmentEnd end_at_read(const c10::OperatorHandle& op, const Treatment& treatment, const torch::jit::Stack& arguments);
  // At an eager region that is given these tensors. Throws NotCapturable where autocast was changed.
  struct EndAtRegion {
    SegmentEnd end;
    graph::Node& region;
  };
  EndAtRegion end_at_region(const std::vector<at::Tensor>& tensors);
  // What that region gave, as fakes; undefined tensors stay. The next segment begins behind them.
  std::vector<at::Tensor> take_results(graph::Node& region, const std::vector<at::Tensor>& real);
  // In front of what no graph can hold. None: what the code holds cannot be told from what was recorded alone.
  std::optional<SegmentEnd> end_for_good();

  // The last segment, whose results are those of the graph. None: there was no end of one.
  std::shared_ptr<Segment> take_last(const graph::Argument& results);
  // What the code still holds of a capture that has failed. `find_value`: as LeftFakes' callers have it.
  void take_left(LeftFakes& left, const FindValue& find_value);

  bool was_cut() const noexcept { return was_cut_; }
  // Whether a read or an eager region has given values, so that the code may hold what a compiled graph gave.
  bool has_values() const noexcept { return recording_.segments.values() != 0; }

 private:
  SegmentEnd end(const std::vector<graph::Node*>& used, const graph::Node* at);
  void bind_all();
  std::vector<std::pair<std::string, const graph::Node*>> nodes_of_numbers();
  void note_memory_of_inputs();

  Recording& recording_;
  CollectiveRecorder& collectives_;
  const CallerState& caller_;
  bool was_cut_ = false;
};

}  // namespace rehearse::capture
