// SPDX-License-Identifier: BSD-3-Clause
#include "capture/trace/kernels.h"

#include <torch/library.h>

#include <rehearse_internal/capture/errors.h>

#include "capture/fake/never_destroyed.h"
#include "capture/trace/operators/matmul_of_fakes.h"
#include "capture/trace/tracer.h"

namespace rehearse::capture {
namespace {

void trace_fallback(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  Tracer* const tracer = Tracer::current();
  if (tracer == nullptr) {
    throw NotCapturable("an operator is to be captured where no capture is under way", "Leave its dispatch keys alone.",
                        exec::CallSite::capture());
  }
  tracer->call(op, *stack);
}

}  // namespace

void register_trace_kernels() {
  static const NeverDestroyed<torch::Library> all([] {
    torch::Library made(torch::Library::IMPL, "_", c10::DispatchKey::DeferredInit, __FILE__, __LINE__);
    made.fallback(torch::CppFunction::makeFromBoxedFunction<&trace_fallback>());
    return made;
  });
  static const NeverDestroyed<torch::Library> matmul([] {
    torch::Library made(torch::Library::IMPL, "aten", c10::DispatchKey::Fake, __FILE__, __LINE__);
    made.impl("matmul", torch::CppFunction::makeFromBoxedFunction<&matmul_of_fakes>());
    return made;
  });
}

}  // namespace rehearse::capture
