// SPDX-License-Identifier: BSD-3-Clause
#include <optional>
#include <utility>

#include <ATen/core/List.h>
#include <ATen/core/stack.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <rehearse_internal/capture/fake_mode.h>

#include "capture/fake/fake_impl.h"
#include "capture/fake/never_destroyed.h"
#include "capture/trace/hooks/process_hooks.h"
#include "capture/trace/operators/matmul_of_fakes.h"
#include "capture/trace/tracer.h"

namespace rehearse::capture {
namespace {

// The keys of autograd and of captures, which must not apply outside the capture's own thread.
constexpr c10::DispatchKeySet kNotInOtherThreads =
    c10::autograd_dispatch_keyset_with_ADInplaceOrView | c10::DispatchKeySet(c10::DispatchKey::DeferredInit);
constexpr c10::DispatchKeySet kBelowTracer(c10::DispatchKeySet::FULL_AFTER, c10::DispatchKey::DeferredInit);

// Replaces fakes by the real tensors for which they stand in the rest of a call. Returns nothing if there is no real
// tensor, or if the fake has another history.
std::optional<c10::IValue> real_value(const c10::IValue& value) {
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    const FakeImpl* const fake = tensor.defined() ? fake_impl(tensor) : nullptr;
    if (!fake) return value;
    if (!fake->real().defined() || fake->real().requires_grad() != tensor.requires_grad()) return std::nullopt;
    return fake->real();
  }
  if (!value.isList()) return value;
  c10::impl::GenericList reals(value.toList().elementType());
  for (const c10::IValue& item : value.toListRef()) {
    const auto real = real_value(item);
    if (!real) return std::nullopt;
    reals.push_back(*real);
  }
  return reals;
}

// In the rest of a call, another thread may read the fakes that are left. A write would not reach their histories.
bool call_on_real(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
  if (op.schema().is_mutable()) return false;
  torch::jit::Stack reals;
  for (const c10::IValue& argument : torch::jit::last(stack, op.schema().arguments().size())) {
    const auto real = real_value(argument);
    if (!real) return false;
    reals.push_back(*real);
  }
  torch::jit::drop(stack, reals.size());
  op.callBoxed(reals);
  for (c10::IValue& result : reals) stack.push_back(std::move(result));
  return true;
}

void trace_fallback(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  if (Tracer* const tracer = Tracer::current()) return tracer->call(op, *stack);
  if (FakeMode::current()) return op.redispatchBoxed(keys & kBelowTracer, stack);
  if (call_on_real(op, *stack)) return;
  const c10::impl::ExcludeDispatchKeyGuard below(kNotInOtherThreads);
  call_without_mode(op, keys, *stack);
}

// max_pool1d() reads the memory of an input that needs no gradient, so a capture records max_pool1d_with_indices(),
// which gives the same.
void max_pool1d_kernel(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  static const auto with_indices = c10::Dispatcher::singleton().findSchemaOrThrow("aten::max_pool1d_with_indices", "");
  Tracer* const tracer = Tracer::current();
  if (tracer == nullptr) return trace_fallback(op, keys, stack);
  tracer->call(with_indices, *stack);
  stack->pop_back();  // the indices
}

void matmul_kernel(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  if (FakeMode::current()) return matmul_of_fakes(op, keys, stack);
  call_without_mode(op, keys, *stack);
}

}  // namespace

void register_trace_kernels() {
  static const NeverDestroyed<torch::Library> all([] {
    torch::Library made(torch::Library::IMPL, "_", c10::DispatchKey::DeferredInit, __FILE__, __LINE__);
    made.fallback(torch::CppFunction::makeFromBoxedFunction<&trace_fallback>());
    return made;
  });
  static const NeverDestroyed<torch::Library> max_pool1d([] {
    torch::Library made(torch::Library::IMPL, "aten", c10::DispatchKey::DeferredInit, __FILE__, __LINE__);
    made.impl("max_pool1d", torch::CppFunction::makeFromBoxedFunction<&max_pool1d_kernel>());
    return made;
  });
  static const NeverDestroyed<torch::Library> matmul([] {
    torch::Library made(torch::Library::IMPL, "aten", c10::DispatchKey::Fake, __FILE__, __LINE__);
    made.impl("matmul", torch::CppFunction::makeFromBoxedFunction<&matmul_kernel>());
    return made;
  });
}

}  // namespace rehearse::capture
