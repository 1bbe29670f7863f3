// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <rehearse/capture/segments.h>

#include "capture/trace/operators/treatment.h"
#include "capture/trace/recorders/caller_state.h"
#include "capture/trace/recorders/captured_work.h"
#include "capture/trace/recording/recording.h"

namespace rehearse::capture {

// Records c10d calls and the waits for their works as nodes. Most of the calls write to their first argument and return
// a Work. Nothing is sent during the capture.
class CollectiveRecorder {
 public:
  CollectiveRecorder(const Tracer& tracer, Recording& recording, const CallerState& caller)
      : tracer_(tracer), recording_(recording), caller_(caller) {}

  // Call it before recording a node that communicates. Gives that node the call's stack and label.
  void note_communication();
  void record(const c10::OperatorHandle& op, const Treatment& treatment, torch::jit::Stack& arguments);

  // Records a wait for a Work that a recorded call returned. After the end of the capture, waits for the real Work.
  bool wait(CapturedWork& work, std::chrono::milliseconds timeout);
  void synchronize(CapturedWork& work);

  // Nodes of the works that the code holds. They become values of the segment that ends.
  std::vector<graph::Node*> nodes_of_works();
  // After the end of the capture: gives each work that the code holds its real Work.
  void set_real(const std::function<c10::IValue(const Segment::Source&)>& value_of);
  void check_outlived() const { works_.check_outlived(); }

 private:
  void note_written(const c10::IValue& value, graph::Node& node, std::vector<std::int64_t> path);
  void record_method(CapturedWork& work, const char* method, graph::List arguments);

  const Tracer& tracer_;
  Recording& recording_;
  const CallerState& caller_;
  CapturedWorks works_;
};

}  // namespace rehearse::capture
