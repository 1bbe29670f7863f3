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

// Ends segments: takes what was recorded since the last end, and every tensor, number and work that the code holds at
// that point.
class SegmentRecorder {
 public:
  SegmentRecorder(Recording& recording, CollectiveRecorder& collectives, const CallerState& caller)
      : recording_(recording), collectives_(collectives), caller_(caller) {}

  // Ends a segment at an operator that reads data. The next segment begins after it.
  SegmentEnd end_at_read(const c10::OperatorHandle& op, const Treatment& treatment, const torch::jit::Stack& arguments);
  // Ends a segment at an eager region that gets these tensors. Throws NotCapturable if the code has changed autocast.
  struct EndAtRegion {
    SegmentEnd end;
    graph::Node& region;
  };
  EndAtRegion end_at_region(const EagerRegion& of, const std::vector<at::Tensor>& tensors);
  // The results of that region as fakes; undefined tensors stay undefined. The next segment begins here.
  std::vector<at::Tensor> take_results(graph::Node& region, const std::vector<at::Tensor>& real);
  // Ends the segment before something that no graph can hold. Returns nothing if running the recording would not
  // reproduce the tensors that the code holds. This is so during a backward that the code runs. It is also so if the
  // code changed requires_grad of a real tensor, or the default dtype, or if an autograd function of the code made a
  // tensor.
  std::optional<SegmentEnd> end_for_good();

  // The last segment, which returns the graph's results. Null if no segment ended before.
  std::shared_ptr<Segment> take_last(const graph::Argument& results);
  // After a failed capture: takes the fakes that the code still holds. `find_value`: finds values of segments that have
  // run.
  void take_left(LeftFakes& left, const FindValue& find_value);

  bool was_cut() const noexcept { return was_cut_; }
  // True if a segment or an eager region has produced values, so that the code may hold results of a compiled graph.
  // The segment in front of a refusal does not count, because it runs operator by operator.
  bool has_values() const noexcept { return has_values_; }

 private:
  SegmentEnd end(const std::vector<graph::Node*>& used, const graph::Node* at);
  void bind_all();
  std::vector<std::pair<std::string, const graph::Node*>> nodes_of_numbers();
  void note_memory_of_inputs();

  Recording& recording_;
  CollectiveRecorder& collectives_;
  const CallerState& caller_;
  bool was_cut_ = false;
  bool has_values_ = false;
};

}  // namespace rehearse::capture
