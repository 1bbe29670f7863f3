// SPDX-License-Identifier: BSD-3-Clause
#include "capture/trace/tracer.h"

#include <stdexcept>
#include <string_view>
#include <utility>

#include <c10/util/ScopeExit.h>
#include <torch/csrc/autograd/function.h>

#include <rehearse/shapes/errors.h>
#include <rehearse_internal/capture/errors.h>
#include <rehearse_internal/capture/fake_tensor.h>
#include <rehearse_internal/exec/check.h>
#include <rehearse_internal/exec/failure.h>
#include <rehearse_internal/exec/throw_site.h>

#include "capture/fake/call/tensors_in.h"
#include "capture/fake/fake_impl.h"
#include "capture/trace/caller/call_stack.h"
#include "capture/trace/operators/kernel_errors.h"
#include "capture/trace/recording/fold_linear.h"
#include "capture/trace/recording/outline_bodies.h"
#include "capture/trace/recording/outline_hooks.h"
#include "capture/trace/shape_remarks.h"

namespace rehearse::capture {

using torch::jit::Stack;

namespace {

// Turns LibTorch's error into a refusal: torch::autograd::grad() finds no history on fakes.
void with_refused_gradients(const std::function<void()>& function) {
  const exec::KeepThrowSites keep;
  try {
    function();
  } catch (const c10::Error& error) {
    const std::string_view what = error.what_without_backtrace();
    if (what.find(kNoHistoryMessage) == std::string_view::npos) throw;
    throw NotCapturable(kGradientsInside, kCallOutside, exec::last_throw());
  }
}

// LibTorch's own factories, such as torch::ones() and torch::rand_like(), hide autograd, and need none.
bool needs_autograd(const Treatment& treatment, const Stack& arguments) {
  bool needs = treatment.is_mutable || treatment.tells_aliases || treatment.kind == Treatment::Kind::Opaque;
  for (const c10::IValue& argument : arguments) {
    for_each_tensor(argument, [&](const at::Tensor& tensor) {
      needs = needs || (treatment.differentiable && tensor.defined() && tensor.requires_grad());
    });
  }
  return needs;
}

// Adds the output's tensors to `tensors`.
graph::Argument output_of(const c10::IValue& value, const ArgumentContext& context, std::vector<at::Tensor>& tensors) {
  const auto list_of = [&](c10::ArrayRef<c10::IValue> values) {
    graph::List items;
    for (const c10::IValue& item : values) items.push_back(output_of(item, context, tensors));
    return items;
  };
  if (value.isTuple()) return list_of(value.toTupleRef().elements());
  if (value.isList()) return list_of(value.toListRef());
  if (value.isTensor()) tensors.push_back(value.toTensor());
  return to_argument(value, *c10::AnyType::get(), context);
}

}  // namespace

NotCapturable kept_tensor(const exec::CallSite& where) {
  return {"a tensor that was captured outlives the call: it was kept in a member, a capture or a global",
          "Return it as a result, or keep a copy made from the results.", where};
}

Tracer::Tracer(std::shared_ptr<shapes::ShapeEnv> shapes, std::vector<NamedTensor> of_module)
    : recording_(std::move(shapes), std::move(of_module)),
      operators_(recording_),
      collectives_(*this, recording_, caller_),
      segments_(recording_, collectives_, caller_),
      bodies_(*this),
      hooks_(*this) {
  recording_.mode.set_bodies(&bodies_);
  recording_.mode.set_hooks(&hooks_);
  recording_.mode.set_ending([this](const std::exception& refusal) { return go_on_eagerly(refusal); });
}

void Tracer::run(const std::function<void()>& user_code) {
  if (std::exchange(ran_, true)) throw std::logic_error("ForwardCapture::run() may be called once");
  caller_.begin(outer_address());
  const TracerScope scope(*this);
  const FakeMode::Scope fakes(recording_.mode);
  const c10::impl::IncludeDispatchKeyGuard trace(c10::DispatchKey::DeferredInit);
  recording_.modes.begin();
  run_code(user_code);
  if (!rest()) recording_.modes.sync();
}

// If the code catches a refusal and then throws something else, the refusal still counts.
void Tracer::run_code(const std::function<void()>& user_code) {
  DefaultGenerator generator([this] { return current() == this && is_in_user_code(); },
                             [this](const NotCapturable& why) { return go_on_eagerly(why); });
  segments_.set_generator(&generator);
  const auto put_back = c10::make_scope_exit([this]() noexcept { segments_.set_generator(nullptr); });
  try {
    with_typed_errors([&] { with_refused_gradients(user_code); });
    if (!rest() && !segments_.refusal()) check_after_code_or_end();
  } catch (const RankAborted&) {
    throw;
  } catch (...) {
    if (note_if_refusal()) {
      recording_.inputs.states().restore();
      throw;
    }
    if (!segments_.refusal()) throw;
  }
  if (!segments_.refusal()) return;
  if (!rest()) recording_.inputs.states().restore();
  std::rethrow_exception(segments_.refusal());
}

bool Tracer::note_if_refusal() {
  try {
    throw;
  } catch (const FakeError&) {
    segments_.note_refusal(std::current_exception());
  } catch (const shapes::ShapeError&) {
    segments_.note_refusal(std::current_exception());
  } catch (...) {
    return false;
  }
  return true;
}

// If the check fails, the recording may still serve this call, but no later one.
void Tracer::check_after_code_or_end() {
  const InOperator inside(recording_.mode);
  try {
    segments_.check_after_code();
    caller_.check_autograd_keys(recording_.graph.site());
  } catch (const NotCapturable& refusal) {
    if (!go_on_eagerly(refusal)) throw;
  }
}

void Tracer::call(const c10::OperatorHandle& op, Stack& stack) {
  recording_.mode.refuse_other_threads();
  const Treatment& treatment = treatments_.of(op);
  const auto first = stack.end() - static_cast<std::ptrdiff_t>(op.schema().arguments().size());
  Stack arguments(std::make_move_iterator(first), std::make_move_iterator(stack.end()));
  stack.erase(first, stack.end());
  if (rest()) {
    call_in_rest(op, arguments);
    for (c10::IValue& result : arguments) stack.push_back(std::move(result));
    return;
  }
  const Stack given = arguments;
  try {
    const InOperator inside(recording_.mode);
    const UntrackedRead by_operator(recording_.hook ? recording_.hook->gradient : at::Tensor());
    call_in_operator(op, treatment, arguments);
  } catch (const std::exception& error) {
    if (!go_on_after(error)) throw;
    arguments = given;
    call_in_rest(op, arguments);
  }
  for (c10::IValue& result : arguments) stack.push_back(std::move(result));
}

void Tracer::call_in_rest(const c10::OperatorHandle& op, Stack& arguments) {
  REHEARSE_CHECK(rest() != nullptr && recording_.mode.has_ended(), op.operator_name().name);
  const InOperator inside(recording_.mode);
  rest()->call(op, arguments);
}

bool Tracer::go_on_after(const std::exception& refusal) {
  const InOperator inside(recording_.mode);
  // A kernel needs data. It may be about to throw an error whose text has the numbers of a tensor.
  const auto* const error = dynamic_cast<const c10::Error*>(&refusal);
  if (error && is_data_access(*error)) return go_on_eagerly(DataAccess(recording_.graph.site()));
  const bool is_refusal = dynamic_cast<const FakeError*>(&refusal) != nullptr ||
                          dynamic_cast<const shapes::ShapeError*>(&refusal) != nullptr;
  if (!is_refusal) return false;
  if (go_on_eagerly(refusal)) return true;
  note_if_refusal();
  return false;
}

void Tracer::call_in_operator(const c10::OperatorHandle& op, const Treatment& treatment, Stack& arguments) {
  const auto replace_by_fakes = [&] {
    for (c10::IValue& argument : arguments) argument = recording_.with_fakes(argument);
  };
  if (treatment.kind == Treatment::Kind::Evaluate) {
    replace_by_fakes();
    return operators_.evaluate(op, arguments);
  }
  recording_.add_asserts();
  recording_.graph.set_origin(call_stack());
  const exec::CallSite& site = recording_.graph.site();
  caller_.check(site);
  if (needs_autograd(treatment, arguments)) caller_.check_autograd_keys(site);
  if (treatment.is_mutable) recording_.values.check_written(treatment.written, arguments);
  recording_.note_owner(arguments);
  if (treatment.communicates) collectives_.note_communication();
  replace_by_fakes();
  // torch::autograd::grad() and backward() start with ones_like() of the result.
  if (treatment.kind == Treatment::Kind::FirstGradient && caller_.is_in_gradients()) {
    throw NotCapturable(kGradientsInside, kCallOutside, site);
  }
  switch (treatment.kind) {
    case Treatment::Kind::Read:
      arguments = {segments_.read(op, treatment, arguments)};
      break;
    case Treatment::Kind::Refuse:
      throw NotCapturable(treatment.reason, treatment.cure, site);
    case Treatment::Kind::Equal:
      if (const auto known = operators_.answer_equal(arguments, segments_.is_whole())) {
        arguments = {*known};
      } else {
        arguments = {segments_.read(op, treatment, arguments)};
      }
      break;
    case Treatment::Kind::StorageBytes:
      refuse_behind_cut("storage_bytes()", site);
      arguments = {recording_.storages.bytes_of(arguments.front().toTensor(), site)};
      break;
    case Treatment::Kind::Version:
      refuse_behind_cut("version()", site);
      arguments = {operators_.read_version(treatment, arguments.front().toTensor())};
      break;
    case Treatment::Kind::Communicate:
      collectives_.record(op, treatment, arguments);
      break;
    case Treatment::Kind::Empty:
      // at::tensor({1, 2, 3}) writes the numbers to the memory of an empty tensor, so the tensor must be real.
      if (caller_.has_called({"_ZN2at6tensorE"})) return operators_.make_constant(op, arguments);
      [[fallthrough]];
    default:
      operators_.record(op, treatment, arguments);
  }
}

c10::SymInt Tracer::read_symbolically(const at::Tensor& tensor) { return operators_.read_symbolically(tensor); }

// The code before a cut (a read or a region) has run and may have changed the answer to the question. Besides, the
// guards for the answer would depend on which segments the call has run.
void Tracer::refuse_behind_cut(const char* question, const exec::CallSite& site) const {
  if (!segments_.recorder().was_cut()) return;
  throw NotCapturable(std::string(question) + " is called behind a read or an eager region of a captured function",
                      "Call it in front of that, and keep what it gives.", site);
}

bool Tracer::has_made(const at::Tensor& tensor) {
  return is_fake(tensor) && recording_.inputs.find(fake_id(tensor)) == nullptr;
}

bool Tracer::has_begun_leaf(const at::Tensor& tensor) const {
  return is_fake(tensor) && recording_.values.is_made_leaf(tensor);
}

void Tracer::begin_leaf(const at::Tensor& made) {
  recording_.mode.refuse_other_threads();
  const InOperator inside(recording_.mode);
  recording_.add_asserts();
  recording_.graph.set_origin(call_stack());
  recording_.modes.sync();
  recording_.node_of(made);
}

void Tracer::end_with(const NotCapturable& refusal) {
  if (!rest()) go_on_eagerly(refusal);  // segments that ran must not run again
  segments_.note_refusal(std::make_exception_ptr(refusal));
  throw refusal;
}

bool Tracer::end(const std::function<SegmentAnswer(SegmentEnd)>& run) {
  const TracerScope scope(*this);
  const InOperator inside(recording_.mode);
  recording_.graph.set_origin({});
  return segments_.end(run);
}

const exec::CallSite* Tracer::find_kept(const std::vector<c10::IValue>& outputs) const {
  std::vector<at::Tensor> tensors;
  for (const c10::IValue& output : outputs) {
    for_each_tensor(output, [&](const at::Tensor& tensor) { tensors.push_back(tensor); });
  }
  return recording_.values.find_outlived(tensors);
}

LeftFakes Tracer::left(bool has_failed, const FindValue& find_value) {
  LeftFakes left;
  recording_.inputs.for_each(
      [&](const at::Tensor& fake, const at::Tensor& real) { left.of_inputs.emplace_back(fake, real); });
  if (rest()) {
    const auto& stand_ins = rest()->stand_ins();
    left.of_inputs.insert(left.of_inputs.end(), stand_ins.begin(), stand_ins.end());
    return left;
  }
  const TracerScope scope(*this);
  if (has_failed) segments_.recorder().take_left(left, find_value);
  return left;
}

CapturedGraph Tracer::finish(const std::vector<c10::IValue>& outputs) {
  recording_.mode.refuse_other_threads();
  const TracerScope scope(*this);
  recording_.add_asserts();
  recording_.graph.set_origin({});
  recording_.values.record_switched_inputs();
  std::vector<at::Tensor> tensors;
  graph::List results;
  for (const c10::IValue& output : outputs) results.push_back(output_of(output, recording_.context(), tensors));
  if (const exec::CallSite* kept = recording_.values.find_outlived(tensors)) throw kept_tensor(*kept);
  collectives_.check_outlived();
  const graph::Argument result(std::move(results));
  std::shared_ptr<Segment> last = segments_.recorder().take_last(result);
  const std::shared_ptr<graph::GraphModule>& module = recording_.graph.module();
  module->graph().output(result);
  outline_hooks(*module);
  outline_bodies(*module, &recording_.remarks);
  fold_linear(*module);
  CapturedGraph captured{module,
                         recording_.inputs.placed(),
                         recording_.shapes,
                         std::move(recording_.remarks),
                         recording_.storages.asked(),
                         recording_.inputs.found_arguments(),
                         std::move(last)};
  add_shape_remarks(*recording_.shapes, captured.remarks);
  return captured;
}

}  // namespace rehearse::capture
