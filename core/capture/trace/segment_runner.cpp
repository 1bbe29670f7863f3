// SPDX-License-Identifier: BSD-3-Clause
#include "capture/trace/segment_runner.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <rehearse_internal/capture/errors.h>
#include <rehearse_internal/exec/check.h>
#include <rehearse_internal/shapes/shape_env.h>

#include "capture/trace/caller/call_stack.h"
#include "capture/trace/recorders/current_tracer.h"

namespace rehearse::capture {

void SegmentRunner::note_refusal(std::exception_ptr refusal) {
  REHEARSE_CHECK(refusal != nullptr, ended_by_);
  std::exception_ptr& first = recording_.hook ? recording_.hook->refusal : refusal_;
  if (!first) first = std::move(refusal);
}

void SegmentRunner::throw_refusal() const {
  if (refusal_) std::rethrow_exception(refusal_);
}

void SegmentRunner::check_after_code() const {
  recording_.inputs.states().check();
  caller_.check_process_modes(recording_.graph.site());
}

// Asks the listener, with the modes of the call restored. An error between two segments fails the whole capture, even
// if the code catches it.
SegmentAnswer SegmentRunner::ask(const std::function<SegmentAnswer()>& listener) {
  REHEARSE_CHECK(listener_ != nullptr && !rest_, ended_by_);
  throw_refusal();
  const SuspendedCapture suspended(generator_, caller_.modes());
  try {
    SegmentAnswer answer = listener();
    recording_.inputs.states().renew();
    recording_.skip_asserts();  // a back end's graphs check the facts that the back end stated
    return answer;
  } catch (...) {
    note_refusal(std::current_exception());
    throw;
  }
}

c10::IValue SegmentRunner::read(const c10::OperatorHandle& op, const Treatment& treatment,
                                const torch::jit::Stack& arguments) {
  REHEARSE_CHECK(!rest_, treatment.target);
  if (listener_ == nullptr || recording_.hook) {
    throw DataDependentRead(op.schema().name(), recording_.graph.site());
  }
  throw_refusal();
  SegmentEnd end = recorder_.end_at_read(op, treatment, arguments);
  const Held held(end);
  check_after_code();
  const SegmentAnswer answer = ask([&] { return listener_->on_read(std::move(end)); });
  take_answer(answer, held);
  return answer.values.at(0);
}

std::shared_ptr<RegionResult> SegmentRunner::run_region(const std::shared_ptr<const EagerRegion>& region,
                                                        const std::vector<at::Tensor>& tensors) {
  if (rest_) {
    std::vector<at::Tensor> real;
    for (const at::Tensor& tensor : tensors) real.push_back(rest_->real_tensor(tensor));
    const OutsideOfCapture outside;
    return region->run(std::move(real));
  }
  const InOperator inside(recording_.mode);
  recording_.graph.set_origin(call_stack());
  caller_.check(recording_.graph.site());
  caller_.check_autograd_keys(recording_.graph.site());
  recording_.mode.refuse_other_threads();
  if (listener_ == nullptr) {
    throw NotCapturable(region->title() + " is called in a function that must be one graph (fullgraph)",
                        "Compile without fullgraph, or call it outside of the compiled function.",
                        recording_.graph.site());
  }
  if (recording_.hook) {
    throw NotCapturable(region->title() + " is called in a hook of a captured function",
                        "Register the hook outside of the captured function.", recording_.graph.site());
  }
  throw_refusal();
  for (const void* const object : region->references()) {
    if (!listener_->is_of_this_call(object)) continue;
    throw NotCapturable(
        region->title() + " gets a reference to an argument, a local object or a member of the captured function",
        "Later calls have others: pass std::ref() of an object that outlives the function.", recording_.graph.site());
  }
  EagerRegion::State state = region->state();
  SegmentRecorder::EndAtRegion ended = recorder_.end_at_region(*region, tensors);
  const Held held(ended.end);
  check_after_code();
  const SegmentAnswer answer = ask([&] { return listener_->on_region(std::move(ended.end), region); });
  std::vector<at::Tensor> real;
  for (const c10::IValue& value : answer.values) real.push_back(value.isTensor() ? value.toTensor() : at::Tensor());
  take_answer(answer, held);
  // Code that changes its own state does so in each call.
  const EagerRegion::State now = region->state();
  for (std::size_t i = 0; i < state.size(); ++i) {
    if (now[i] != state[i]) state[i] = 0;
  }
  if (state != EagerRegion::State()) states_.push_back({region, state});
  answer.result->replace(rest_ ? rest_->as_held(real) : recorder_.take_results(ended.region, real));
  return answer.result;
}

bool RegionState::holds() const {
  const EagerRegion::State now = region->state();
  const auto fits = [](std::uint64_t before, std::uint64_t after) { return before == 0 || before == after; };
  return std::equal(state.begin(), state.end(), now.begin(), fits);
}

// See SegmentRecorder::end_for_good(). Also returns nothing if the capture has ended or the code has got a refusal.
std::optional<SegmentEnd> SegmentRunner::end_for_good() {
  return rest_ || refusal_ ? std::nullopt : recorder_.end_for_good();
}

bool SegmentRunner::end_in_place_of(const std::exception& refusal) {
  if (!rest_) recording_.mode.refuse_other_threads();  // the code holds what no segment can give
  if (listener_ == nullptr || recording_.hook || caller_.is_in_gradients()) return false;
  const InOperator inside(recording_.mode);  // Rehearse, not the code, asks autograd below
  std::optional<SegmentEnd> end = end_for_good();
  if (!end) return false;
  const Held held(*end);
  const SegmentAnswer answer = ask([&] { return listener_->on_refusal(std::move(*end), refusal.what()); });
  if (!answer.value_of) return false;
  ended_by_ = refusal.what();
  take_answer(answer, held);
  return true;
}

bool SegmentRunner::end(const std::function<SegmentAnswer(SegmentEnd)>& run) {
  recording_.mode.refuse_other_threads();
  std::optional<SegmentEnd> end = end_for_good();
  if (!end) return false;
  const Held held(*end);
  take_answer(run(std::move(*end)), held);
  return rest_ != nullptr;
}

void SegmentRunner::take_answer(const SegmentAnswer& answer, const Held& held) {
  if (!answer.value_of) return;
  REHEARSE_CHECK(!rest_ && !refusal_ && !recording_.mode.has_ended(), ended_by_);
  for (const LiveNumber& number : held.numbers) {
    recording_.shapes->tell(number.symbol, answer.value_of(number.source).toInt());
  }
  rest_ = std::make_unique<EagerRest>(recording_, held.tensors, answer.value_of);
  rest_->make_real(held.tensors, answer.value_of);
  if (generator_) generator_->leave();
  recording_.mode.end();
  collectives_.set_real(answer.value_of);
}

}  // namespace rehearse::capture
