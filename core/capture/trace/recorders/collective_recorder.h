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

// Makes nodes of c10d's calls in place, whose first argument is written and which give a Work, and of waits for these.
// Nothing is sent.
class CollectiveRecorder {
 public:
  CollectiveRecorder(const Tracer& tracer, Recording& recording, const CallerState& caller)
      : tracer_(tracer), recording_(recording), caller_(caller) {}

  // `outside`: the return address of the code around the capture (outer_address()).
  void begin(void* outside) noexcept { outside_ = outside; }

  // The next node communicates: says from where, and with which label.
  void note_communication();
  void record(const c10::OperatorHandle& op, const Treatment& treatment, torch::jit::Stack& arguments);

  // Of a Work that a recorded call gave; behind the end of the capture of the one that it stands for.
  bool wait(CapturedWork& work, std::chrono::milliseconds timeout);
  void synchronize(CapturedWork& work);

  // Of the works that the code holds: they become values of the segment that ends.
  std::vector<graph::Node*> nodes_of_works();
  // The capture has ended: the works that the code holds stand for these.
  void set_real(const std::function<c10::IValue(const Segment::Source&)>& value_of);
  // Throws NotCapturable when the code still holds one.
  void check_outlived() const { works_.check_outlived(); }

 private:
  void note_written(const c10::IValue& value, graph::Node& node, std::vector<std::int64_t> path);
  void record_method(CapturedWork& work, const char* method, graph::List arguments);

  const Tracer& tracer_;
  Recording& recording_;
  const CallerState& caller_;
  CapturedWorks works_;
  void* outside_ = nullptr;
};

}  // namespace rehearse::capture
