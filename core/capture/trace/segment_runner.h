// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <rehearse/capture/segments.h>

#include "capture/trace/caller/default_generator.h"
#include "capture/trace/eager_rest.h"
#include "capture/trace/recorders/segment_recorder.h"

namespace rehearse::capture {

// Runs segments during a capture. The listener runs what was recorded, and answers with the values that the code gets.
// Then the capture goes on. If the answer ends the capture (SegmentAnswer::value_of), the rest of the code runs eagerly
// instead. If the code gets a refusal (an error that says why code cannot be captured), the capture fails, even if the
// code catches the refusal.
class SegmentRunner {
 public:
  SegmentRunner(Recording& recording, CollectiveRecorder& collectives, const CallerState& caller)
      : recording_(recording), collectives_(collectives), caller_(caller), recorder_(recording, collectives, caller) {}

  // Without a listener, reads and eager regions are errors.
  void set_listener(SegmentListener* listener) noexcept { listener_ = listener; }
  // `generator`: replaces the CPU's default generator while captured code runs. The listener runs with the real one.
  // Call it before the code runs, and with null afterwards.
  void set_generator(DefaultGenerator* generator) noexcept { generator_ = generator; }

  // True if the code must be one graph.
  bool is_whole() const { return listener_ == nullptr || listener_->expects_whole(); }
  // Ends the segment and returns the value that the operator reads.
  c10::IValue read(const c10::OperatorHandle& op, const Treatment& treatment, const torch::jit::Stack& arguments);
  std::shared_ptr<RegionResult> run_region(const std::shared_ptr<const EagerRegion>& region,
                                           const std::vector<at::Tensor>& tensors);
  // The states of the eager regions that have run, without those that change their own state.
  const std::vector<RegionState>& states() const noexcept { return states_; }
  // Call it for something that no graph can hold: the listener runs what was recorded, and the rest of the code runs
  // eagerly. Returns false if that is not possible, for example without a listener, in a hook, or if autograd has seen
  // fakes. The caller must then throw the refusal.
  bool end_in_place_of(const std::exception& refusal);
  // Like end_in_place_of(), but `run` runs what was recorded.
  bool end(const std::function<SegmentAnswer(SegmentEnd)>& run);

  // Keeps only the first refusal. During a hook's capture, the refusal goes to the hook.
  void note_refusal(std::exception_ptr refusal);
  const std::exception_ptr& refusal() const noexcept { return refusal_; }
  // Throws NotCapturable if the code changed what no graph can change: the state of a real tensor (TensorStates), or
  // the default dtype.
  void check_after_code() const;

  // Null during the capture.
  const EagerRest* rest() const noexcept { return rest_.get(); }
  // The refusal that ended the capture and let the code go on; empty if there is none.
  const std::string& ended_by() const noexcept { return ended_by_; }
  SegmentRecorder& recorder() noexcept { return recorder_; }
  const SegmentRecorder& recorder() const noexcept { return recorder_; }

 private:
  struct Held {  // values that the code holds at a possible end of the capture
    explicit Held(const SegmentEnd& end) : tensors(end.alive), numbers(end.numbers) {}
    const std::vector<LiveValue> tensors;
    const std::vector<LiveNumber> numbers;
  };

  void throw_refusal() const;
  std::optional<SegmentEnd> end_for_good();
  SegmentAnswer ask(const std::function<SegmentAnswer()>& listener);
  void take_answer(const SegmentAnswer& answer, const Held& held);

  Recording& recording_;
  CollectiveRecorder& collectives_;
  const CallerState& caller_;
  SegmentRecorder recorder_;
  SegmentListener* listener_ = nullptr;
  DefaultGenerator* generator_ = nullptr;
  std::unique_ptr<EagerRest> rest_;
  std::string ended_by_;
  std::exception_ptr refusal_;
  std::vector<RegionState> states_;
};

}  // namespace rehearse::capture
