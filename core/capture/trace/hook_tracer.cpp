// SPDX-License-Identifier: BSD-3-Clause
#include "capture/trace/hook_tracer.h"

#include <string_view>

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/ScopeExit.h>

#include <rehearse_internal/capture/fake_tensor.h>
#include <rehearse_internal/exec/failure.h>

#include "capture/trace/caller/call_stack.h"
#include "capture/trace/recording/outline_hooks.h"
#include "capture/trace/tracer.h"
#include "graph/run/call/communication.h"

namespace rehearse::capture {
namespace {

using graph::Node;

// A gradient as a backward makes it: a tensor with its own storage, in row-major order.
at::Tensor gradient_for(const at::Tensor& tensor) {
  TensorSpec spec = spec_of(tensor);
  spec.strides = contiguous_strides(spec.sizes);
  spec.storage_offset = 0;
  spec.requires_grad = spec.is_wrapped_number = spec.is_conj = spec.is_neg = false;
  return make_fake(spec);
}

bool is_autocast_on() {
  return at::autocast::is_autocast_enabled(at::kCPU) || at::autocast::is_autocast_enabled(at::kCUDA);
}

// True if the code of a checkpoint, or of another body, is being captured and the node lies outside of it.
bool is_outside_of_checkpoint(const Node& node) {
  int open = 0;  // number of bodies that begin after the node and have not ended
  for (const Node* each = node.next(); each != nullptr; each = each->next()) {
    if (each->target() == kBodyBegin) ++open;
    if (each->target() == kBodyEnd && open > 0) --open;
  }
  return open > 0;
}

constexpr const char* kKeeps = "it keeps a tensor that it has got or made";

std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& known) {
    return known.what();
  }
}

NotCapturable refused(const std::string& what, const char* cure) { return {what, cure, call_stack()}; }

NotCapturable not_captured(const std::string& why) {
  return refused("a hook is registered on a tensor inside of a captured function, and " + why,
                 "Register it outside of the captured function, or let it compute with tensors alone.");
}

// Returns the reason why a backward cannot run this node; nothing if a hook may contain it.
std::optional<std::string> why_not(const Node& node) {
  const std::string_view target = node.target();
  if (target.starts_with("rehearse.")) return "it has a checkpoint";
  if (graph::communicates(node)) return "it communicates (" + node.target() + ")";
  if (target.starts_with("torch.ops.rehearse.") && target != "torch.ops.rehearse.opaque.default") {
    return "it uses the storage or the version of a tensor (" + node.target() + ")";
  }
  if (target == "torch.ops.aten.requires_grad_.default") return "it makes a leaf";
  if (!node.meta().unbacked_bindings.empty()) return "it asks for a size or number that only data tells";
  return std::nullopt;
}

}  // namespace

std::optional<NotCapturable> HookTracer::refusal_of(const at::Tensor& tensor) const {
  Recording& recording = tracer_.recording();
  if (!tracer_.has_made(tensor) || tracer_.has_begun_leaf(tensor)) {
    return refused(
        "a hook is registered on a tensor inside of a captured function that is an argument, a parameter, "
        "a constant or a leaf",
        "Each call would add one more. Register it once, outside of the captured function.");
  }
  if (recording.hook) return not_captured("another hook registers it");
  if (is_autocast_on()) {
    return not_captured("autocast is on there, while a backward may run without it");
  }
  const InOperator inside(recording.mode);
  const Node& node = recording.node_of(tensor);
  if (node.target() == "rehearse.eager_result") return not_captured("an eager region has given the tensor");
  if (!recording.segments.has(node)) {
    return not_captured(
        "the tensor was made in front of a read or an eager region, behind which the hook is registered");
  }
  if (is_outside_of_checkpoint(node)) {
    return not_captured("the tensor was made outside of the checkpoint whose code registers the hook");
  }
  return std::nullopt;
}

Node& HookTracer::begin(Node& of, const at::Tensor& gradient) {
  Recording& recording = tracer_.recording();
  Node& mark = recording.graph.call(std::string(kHookBegin), {begun_++, of});
  mark.meta().set_value(meta_of(gradient));
  recording.values.add(gradient, mark, {});
  return mark;
}

Node& HookTracer::end(const Node& begin, const at::TensorBase& result) {
  Recording& recording = tracer_.recording();
  graph::List results;
  if (result.defined()) results.emplace_back(recording.node_of(at::Tensor(result)));
  return recording.graph.call(std::string(kHookEnd),
                              {begin.args()[0], std::move(results), layout_was_read(recording.hook->gradient)});
}

// An exception of the hook's code refuses the hook, not the capture: in eager mode, the code would throw only in the
// backward.
std::optional<std::string> HookTracer::run(const Hook& hook, const at::Tensor& gradient, at::TensorBase& result) {
  Recording& recording = tracer_.recording();
  const at::NoGradGuard as_in_a_backward;
  const ModeNodes::WithoutGradMode without_nodes(recording.modes);
  std::optional<std::string> why;
  try {
    result = hook(gradient);
  } catch (const RankAborted&) {
    throw;
  } catch (const std::exception& error) {
    why = std::string("it throws where it is captured: ") + error.what();
  }
  if (at::GradMode::is_enabled() && !why) why = "it switches grad mode and leaves it so";
  at::GradMode::set_enabled(false);
  const InOperator inside(recording.mode);
  recording.modes.sync();
  return why;
}

std::optional<std::string> HookTracer::why_no_body(const Node& begin, const Node& end) const {
  for (const Node* node = begin.next(); node != &end; node = node->next()) {
    if (auto why = why_not(*node)) return why;
  }
  return std::nullopt;
}

bool HookTracer::is_used(const at::Tensor& tensor) const {
  if (!tracer_.has_made(tensor)) return false;
  const InOperator inside(tracer_.recording().mode);
  return !tracer_.recording().node_of(tensor).users().empty();
}

std::variant<unsigned, NotCapturable> HookTracer::add(const at::Tensor& tensor, const Hook& hook) {
  auto recorded = record(tensor, hook);
  if (auto* const refusal = std::get_if<NotCapturable>(&recorded)) return std::move(*refusal);
  const Marks& marks = std::get<Marks>(recorded);
  auto& hooks = hooks_[{fake_id(tensor), marks.begin->args()[1].node()}];
  hooks.push_back(marks);
  return static_cast<unsigned>(hooks.size() - 1);
}

// Records a pair of hooks. The first one, on `output`, leaves a value for the second one, on `input`. The node of that
// value is the end mark of the first hook.
void HookTracer::add(const at::Tensor& output, const OfOutput& of_output, const at::Tensor& input,
                     const OfInput& of_input) {
  auto first = record(output, [&](const at::TensorBase& gradient) { return of_output(at::Tensor(gradient)); });
  if (const auto* const refusal = std::get_if<NotCapturable>(&first)) throw *refusal;
  if (!input.defined()) return;
  Recording& recording = tracer_.recording();
  const Marks& marks = std::get<Marks>(first);
  const Values::Snapshot before = recording.values.snapshot();
  at::Tensor left;
  {
    const InOperator inside(recording.mode);
    left = gradient_for(output);
    marks.end->meta().set_value(meta_of(left));
    recording.values.add(left, *marks.end, {});
  }
  auto second = record(input, [&](const at::TensorBase& gradient) { return of_input(at::Tensor(gradient), left); });
  left.reset();
  const InOperator inside(recording.mode);
  const bool is_kept = recording.values.is_alive_since(before);
  recording.values.restore(before);
  if (!is_kept && std::holds_alternative<Marks>(second)) return;
  if (const auto* const kept = std::get_if<Marks>(&second)) {
    erase_hook(*recording.graph.module(), *kept->begin, *kept->end);
  }
  erase_hook(*recording.graph.module(), *marks.begin, *marks.end);
  if (is_kept) throw not_captured(kKeeps);
  throw std::get<NotCapturable>(second);
}

std::variant<HookTracer::Marks, NotCapturable> HookTracer::record(const at::Tensor& tensor, const Hook& hook) {
  Recording& recording = tracer_.recording();
  recording.mode.refuse_other_threads();
  if (auto refusal = refusal_of(tensor)) return *std::move(refusal);
  std::optional<InOperator> inside(std::in_place, recording.mode);
  recording.add_asserts();
  recording.graph.set_origin(call_stack());
  recording.modes.sync();
  Node& of = recording.node_of(tensor);
  const Values::Snapshot before = recording.values.snapshot();
  recording.hook.emplace(gradient_for(tensor));
  const auto over = c10::make_scope_exit([&]() noexcept { recording.hook.reset(); });
  Node& begun = begin(of, recording.hook->gradient);
  inside.reset();

  at::TensorBase result;
  std::optional<std::string> why = run(hook, recording.hook->gradient, result);

  inside.emplace(recording.mode);
  recording.graph.set_origin(call_stack());
  Node& ended = end(begun, why ? at::TensorBase() : result);
  result.reset();
  if (recording.hook->refusal) {
    why = "it does what no graph can hold: " + text_of(recording.hook->refusal);
  }
  if (!why) why = why_no_body(begun, ended);
  recording.hook->gradient.reset();
  if (!why && recording.values.is_alive_since(before)) why = kKeeps;
  recording.values.restore(before);
  if (why) {
    erase_hook(*recording.graph.module(), begun, ended);
    return not_captured(*why);
  }
  return Marks{&begun, &ended};
}

std::optional<NotCapturable> HookTracer::remove(const at::Tensor& tensor, unsigned position) {
  Recording& recording = tracer_.recording();
  recording.mode.refuse_other_threads();
  const InOperator inside(recording.mode);
  const auto found = hooks_.find({fake_id(tensor), &recording.node_of(tensor)});
  if (found == hooks_.end() || position >= found->second.size()) {
    return refused("remove_hook() is called for hook " + std::to_string(position) +
                       " of a tensor in a captured function, which has not registered it there",
                   "Remove it where it was registered, and before the tensor is changed in place.");
  }
  Marks& marks = found->second[position];
  if (marks.begin == nullptr) return std::nullopt;
  if (!recording.segments.has(*marks.begin)) {
    return refused("remove_hook() is called behind a read or an eager region of a captured function",
                   "Remove it in front of that.");
  }
  erase_hook(*recording.graph.module(), *marks.begin, *marks.end);
  marks = {};
  return std::nullopt;
}

}  // namespace rehearse::capture
