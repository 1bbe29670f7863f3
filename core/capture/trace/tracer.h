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

// One capture. Takes the operators that come to the key DeferredInit, above autograd, and has each one recorded and
// answered with fakes that are computed below it.
class Tracer {
 public:
  Tracer(std::shared_ptr<shapes::ShapeEnv> shapes, std::vector<NamedTensor> of_module);

  // The calling fiber's; null when nothing is captured in it.
  static Tracer* current() noexcept { return current_tracer(); }

  Recording& recording() noexcept { return recording_; }
  SegmentRunner& segments() noexcept { return segments_; }

  void run(const std::function<void()>& user_code);
  // Behind the code: as ForwardCapture has them.
  bool end(const std::function<SegmentAnswer(SegmentEnd)>& run);
  const exec::CallSite* find_kept(const std::vector<c10::IValue>& outputs) const;
  LeftFakes left(bool has_failed, const FindValue& find_value);
  CapturedGraph finish(const std::vector<c10::IValue>& outputs);

  // One operator; its arguments are on the stack, its results will be.
  void call(const c10::OperatorHandle& op, torch::jit::Stack& stack);
  // An integer of data as a symbol that the graph brings into being.
  c10::SymInt read_symbolically(const at::Tensor& tensor);
  // Whether the code has computed the tensor: no argument, parameter or constant.
  bool has_made(const at::Tensor& tensor);
  // Such a tensor begins to require grad, as a leaf.
  void begin_leaf(const at::Tensor& made);
  // Whether the code has told the tensor to require grad, which required none.
  bool has_begun_leaf(const at::Tensor& tensor) const;

  HookTracer& hooks() noexcept { return hooks_; }

  // Null while the capture goes on.
  const EagerRest* rest() const noexcept { return segments_.rest(); }
  // Ends the capture in place of the refusal. False: the code is to get the refusal.
  bool go_on_eagerly(const std::exception& refusal) { return segments_.end_in_place_of(refusal); }
  // The code cannot even run as it is: it has got something else than eager mode would have given it.
  [[noreturn]] void end_with(const NotCapturable& refusal);
  // The code is at work, neither an operator of it nor what runs between two segments.
  bool is_in_user_code() const noexcept { return !is_in_operator() && !rest(); }
  bool is_in_operator() const noexcept { return recording_.mode.thread()->in_operator(); }

 private:
  void run_code(const std::function<void()>& user_code);
  // The exception that is being handled; whether it is one.
  bool note_if_refusal();
  bool go_on_after(const std::exception& refusal);
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
