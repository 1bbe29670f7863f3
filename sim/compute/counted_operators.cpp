// SPDX-License-Identifier: BSD-3-Clause
#include "counted_operators.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <rehearse/exec/fiber_local.h>
#include <rehearse/exec/this_rank.h>

#include "operator_cost.h"

namespace rehearse::sim {
namespace {

constexpr auto kKey = c10::DispatchKey::TESTING_ONLY_GenericMode;
constexpr c10::DispatchKeySet kBelow(c10::DispatchKeySet::FULL_AFTER, kKey);

const exec::FiberLocal<const ComputeModel*> g_model;

// Made of other operators, which come here by themselves.
bool is_composite(const c10::OperatorHandle& op) {
  return op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) &&
         !op.hasKernelForDispatchKey(c10::DispatchKey::CPU) &&
         !op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd);
}

// On fakes, in a capture, and on tensors without data.
bool computes_nothing(c10::DispatchKeySet keys) {
  return keys.has(c10::DispatchKey::Fake) || keys.has(c10::DispatchKey::DeferredInit) ||
         keys.has(c10::DispatchKey::Meta);
}

bool is_meta(c10::ArrayRef<c10::IValue> results) {
  return !results.empty() && results.front().isTensor() && results.front().toTensor().defined() &&
         results.front().toTensor().is_meta();
}

bool communicates(const c10::OperatorHandle& op) {
  return op.operator_name().name.starts_with("c10d::") || op.operator_name().name.starts_with("_c10d_functional::");
}

void count_operator(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const ComputeModel* const* const model = g_model.find();
  if (model == nullptr || *model == nullptr) return op.redispatchBoxed(keys & kBelow, stack);
  const bool uncounted = computes_nothing(keys) || communicates(op);
  if (!uncounted && is_composite(op)) return op.redispatchBoxed(keys & kBelow, stack);
  VirtualDuration duration{};
  {
    const c10::impl::ExcludeDispatchKeyGuard whatever_it_calls(kKey);
    if (uncounted) return op.redispatchBoxed(keys & kBelow, stack);
    const auto& schema = op.schema();
    const OperatorCost cost(schema, torch::jit::last(*stack, schema.arguments().size()));
    op.redispatchBoxed(keys & kBelow, stack);
    const auto results = torch::jit::last(*stack, schema.returns().size());
    if (!is_meta(results)) duration = cost.duration(results, **model);
  }
  if (duration > VirtualDuration::zero()) exec::this_rank::sleep_for(duration, "a computation");
}

// Once a process: programs that never ask for it do not pay for it.
void register_fallback() {
  static torch::Library library(torch::Library::IMPL, "_", kKey, __FILE__, __LINE__);
  static const bool registered = (library.fallback(torch::CppFunction::makeFromBoxedFunction<&count_operator>()), true);
  static_cast<void>(registered);
}

}  // namespace

CountedOperators::CountedOperators(const ComputeModel& model) {
  if (!model.on()) return;
  register_fallback();
  *g_model = &model;
  key_.emplace(kKey);
}

CountedOperators::~CountedOperators() {
  if (key_) *g_model = nullptr;
}

}  // namespace rehearse::sim
