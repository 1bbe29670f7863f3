// SPDX-License-Identifier: BSD-3-Clause
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <rehearse_internal/capture/fake_mode.h>

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

void trace_fallback(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  if (Tracer* const tracer = Tracer::current()) return tracer->call(op, *stack);
  if (FakeMode::current()) return op.redispatchBoxed(keys & kBelowTracer, stack);
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
