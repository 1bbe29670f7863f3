// SPDX-License-Identifier: BSD-3-Clause
#include "capture/trace/eager_rest.h"

#include <map>
#include <utility>

#include <ATen/core/List.h>

#include <rehearse_internal/capture/errors.h>
#include <rehearse_internal/capture/fake_mode.h>
#include <rehearse_internal/capture/fake_tensor.h>
#include <rehearse_internal/exec/check.h>

#include "capture/fake/become_real.h"
#include "capture/fake/call/tensors_in.h"
#include "capture/fake/fake_impl.h"
#include "capture/trace/caller/call_stack.h"

namespace rehearse::capture {

EagerRest::EagerRest(Recording& recording, const std::vector<LiveValue>& alive, const ValueOf& value_of)
    : recording_(recording) {
  for (const LiveValue& live : alive) {
    c10::IValue value = value_of(live.source);
    if (value.isTensor()) real_.emplace(live.fake_id, std::move(value).toTensor());
  }
  recording_.inputs.for_each([this](const at::Tensor& fake, const at::Tensor& real) { lend_history_of(fake, real); });
}

// Goes in order of creation, so that a base comes before its views.
void EagerRest::make_real(const std::vector<LiveValue>& alive, const ValueOf& value_of) {
  REHEARSE_CHECK(stand_ins_.empty() && !recording_.mode.has_ended(), stand_ins_.size());
  const Inputs& inputs = recording_.inputs;
  std::map<std::uint64_t, at::Tensor> fakes;
  for (const at::Tensor& fake : recording_.values.alive()) fakes.emplace(fake_id(fake), fake);
  std::map<const c10::TensorImpl*, std::size_t> uses;
  for (const LiveValue& live : alive) {
    const c10::IValue value = value_of(live.source);
    if (value.isTensor()) ++uses[value.toTensor().unsafeGetTensorImpl()];
  }
  for (const LiveValue& live : alive) {
    const auto fake = fakes.find(live.fake_id);
    if (fake == fakes.end() || recording_.inputs.find(live.fake_id) != nullptr) continue;
    const c10::IValue value = value_of(live.source);
    if (!value.isTensor()) continue;
    const at::Tensor& real = value.toTensor();
    // Two fakes may stand for the same tensor, because y.contiguous() returns y itself if y is contiguous. For the same
    // reason, a fake may stand for the caller's own tensor. In both cases another object of the tensor exists already,
    // so the fake stays a fake.
    if (uses.at(real.unsafeGetTensorImpl()) > 1 || inputs.has(real)) {
      stand_ins_.emplace_back(fake->second, real);
      fake_impl(fake->second)->take_memory(real);
      continue;
    }
    become_real(fake->second, real, [this](const at::Tensor& base) { return handle_of(base); });
    handles_.emplace(real.unsafeGetTensorImpl(), fake->second);
  }
  inputs.for_each([](const at::Tensor& fake, const at::Tensor& real) { fake_impl(fake)->take_memory(real); });
}

at::Tensor EagerRest::handle_of(const at::Tensor& real) const {
  const auto found = handles_.find(real.unsafeGetTensorImpl());
  const at::Tensor handle = found != handles_.end() ? found->second.lock() : at::Tensor();
  return handle.defined() ? handle : real;
}

std::vector<at::Tensor> EagerRest::as_held(const std::vector<at::Tensor>& results) const {
  std::vector<at::Tensor> held;
  for (const at::Tensor& result : results) {
    at::Tensor& tensor = held.emplace_back(result);
    if (!result.defined()) continue;
    tensor = view_of_handles(handle_of(result), [this](const at::Tensor& base) { return handle_of(base); });
    for (const auto& [fake, real] : stand_ins_) {
      if (const at::Tensor alive = fake.lock(); alive.defined() && real.is_same(result)) tensor = alive;
    }
    recording_.inputs.for_each([&](const at::Tensor& fake, const at::Tensor& real) {
      if (real.is_same(result)) tensor = fake;
    });
  }
  return held;
}

at::Tensor EagerRest::real_tensor(const at::Tensor& tensor) const {
  if (!tensor.defined() || !is_fake(tensor)) return tensor;
  at::Tensor real = with_history(tensor);
  if (!real.requires_grad() || tensor.requires_grad()) return real;
  // Only the real tensor requires grad. If the fake stands for an input that did not require grad, a write to the real
  // tensor or to its base has given the real tensor a history, which must stay.
  const Inputs::Source* const source = recording_.inputs.find(fake_id(tensor));
  if (source && source->fake.is_same(tensor) && !source->requires_grad) return real;
  return real.variable_data();  // tensor.data() returned the same fake without its history
}

at::Tensor EagerRest::with_history(const at::Tensor& tensor) const {
  const std::uint64_t id = fake_id(tensor);
  if (const auto found = real_.find(id); found != real_.end()) return found->second;
  if (const Inputs::Source* const source = recording_.inputs.find(id)) return source->real;
  throw NotCapturable("a tensor was made by another capture, or where this one could not see it",
                      "Make it with operators on tensors inside of the captured function.", call_stack());
}

c10::IValue EagerRest::real_value(const c10::IValue& value) const {
  if (value.isTensor()) return real_tensor(value.toTensor());
  if (value.isSymInt()) return value.toSymInt().guard_int(__FILE__, __LINE__);
  if (!value.isList()) return value;
  const auto list = value.toList();
  c10::impl::GenericList real(list.elementType());
  for (const c10::IValue& item : value.toListRef()) real.push_back(real_value(item));
  return real;
}

void EagerRest::call(const c10::OperatorHandle& op, torch::jit::Stack& arguments) const {
  const bool may_change = op.schema().is_mutable();
  const torch::jit::Stack given = may_change ? arguments : torch::jit::Stack();
  const FakeMode::Pause paused;
  for (c10::IValue& argument : arguments) argument = real_value(argument);
  op.callBoxed(arguments);
  for (const c10::IValue& argument : given) {
    for_each_tensor(argument, [this](const at::Tensor& tensor) { renew(tensor); });
  }
  if (may_change) renew_bases();
}

// A write to a view also gives its base a history.
void EagerRest::renew_bases() const {
  recording_.inputs.for_each([this](const at::Tensor& fake, const at::Tensor& real) {
    if (real.requires_grad() && !fake.requires_grad()) lend_history_of(fake, real);
  });
}

// Updates the fake to the current layout and history of its real tensor.
void EagerRest::renew(const at::Tensor& tensor) const {
  FakeImpl* const fake = fake_impl(tensor);
  if (fake == nullptr) return;
  const at::Tensor real = with_history(tensor);
  fake->set_geometry(real.sym_sizes(), real.sym_strides(), real.sym_storage_offset());
  lend_history_of(tensor, real);
  if (!real.requires_grad()) take_history(tensor);  // after detach_()
}

void EagerRest::lend_history_of(const at::Tensor& fake, const at::Tensor& real) const {
  if (auto accumulator = lend_history(fake, real)) accumulators_.push_back(std::move(accumulator));
}

}  // namespace rehearse::capture
