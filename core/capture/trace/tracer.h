// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>

#include <rehearse/capture/forward_capture.h>
#include <rehearse/capture/segments.h>
#include <rehearse_internal/capture/fake_errors.h>
#include <rehearse_internal/capture/left_fakes.h>

#include "capture/trace/body_tracer.h"
#include "capture/trace/hook_tracer.h"
#include "capture/trace/operators/treatment.h"
#include "capture/trace/recorders/caller_state.h"
#include "capture/trace/recorders/collective_recorder.h"
#include "capture/trace/recorders/current_tracer.h"
#include "capture/trace/recorders/operator_recorder.h"
#include "capture/trace/recording/recording.h"
#include "capture/trace/segment_runner.h"

namespace rehearse::capture {

// One capture. Receives operators at the key DeferredInit, above autograd. Records operators as their Treatment says,
// and runs them on fakes below that key.
class Tracer {
 public:
  Tracer(std::shared_ptr<shapes::ShapeEnv> shapes, std::vector<NamedTensor> of_module);

  static Tracer* current() noexcept { return current_tracer(); }

  Recording& recording() noexcept { return recording_; }
  SegmentRunner& segments() noexcept { return segments_; }

  void run(const std::function<void()>& user_code);
  // Call end() and find_kept() after the code; ForwardCapture's functions of these names describe them.
  bool end(const std::function<SegmentAnswer(SegmentEnd)>& run);
  const exec::CallSite* find_kept(const std::vector<c10::IValue>& outputs) const;
  LeftFakes left(bool has_failed, const FindValue& find_value);
  CapturedGraph finish(const std::vector<c10::IValue>& outputs);

  // Handles one operator. Replaces its arguments on the stack by its results.
  void call(const c10::OperatorHandle& op, torch::jit::Stack& stack);
  c10::SymInt read_symbolically(const at::Tensor& tensor);
  // True if the code computed the tensor: it is no argument, parameter or constant.
  bool has_made(const at::Tensor& tensor);
  // Records that a tensor which the code computed begins to require grad, as a leaf.
  void begin_leaf(const at::Tensor& made);
  // True if the tensor is a leaf because the code made it require grad.
  bool has_begun_leaf(const at::Tensor& tensor) const;

  HookTracer& hooks() noexcept { return hooks_; }
  const CallerState& caller() const noexcept { return caller_; }

  // Null during the capture.
  const EagerRest* rest() const noexcept { return segments_.rest(); }
  // Ends the capture because of the refusal, so that the code can run eagerly. Returns false if the code must get the
  // refusal.
  bool go_on_eagerly(const std::exception& refusal) { return segments_.end_in_place_of(refusal); }
  // Ends the capture before what is refused, if possible. Otherwise notes the refusal, because the code may catch it,
  // and returns false. Call it in the handler that caught the refusal.
  bool go_on_after(const std::exception& refusal);
  // Fails the call. Use it if the code asks about a tensor and not even the real tensor gives the answer of eager mode,
  // so that the code cannot go on eagerly either.
  [[noreturn]] void end_with(const NotCapturable& refusal);
  // True while captured code runs; false during operators, and after the capture has ended.
  bool is_in_user_code() const noexcept { return !is_in_operator() && !rest(); }
  bool is_in_operator() const noexcept { return recording_.mode.thread()->in_operator(); }

 private:
  void run_code(const std::function<void()>& user_code);
  // Notes the current exception if it is a refusal. Returns whether it is.
  bool note_if_refusal();
  void check_after_code_or_end();
  void call_in_operator(const c10::OperatorHandle& op, const Treatment& treatment, torch::jit::Stack& arguments);
  void refuse_behind_cut(const char* question, const exec::CallSite& site) const;
  void call_in_rest(const c10::OperatorHandle& op, torch::jit::Stack& arguments);

  const CountedCapture counted_;
  Recording recording_;
  CallerState caller_;
  OperatorRecorder operators_;
  CollectiveRecorder collectives_;
  SegmentRunner segments_;
  BodyTracer bodies_;
  HookTracer hooks_;
  Treatments treatments_;
  bool ran_ = false;
};

}  // namespace rehearse::capture
