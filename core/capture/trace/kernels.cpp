// SPDX-License-Identifier: BSD-3-Clause
#include "capture/trace/kernels.h"

#include <memory>

#include <torch/library.h>

#include <rehearse/capture/errors.h>

#include "capture/trace/matmul_of_fakes.h"
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
  // Left in place at exit: LibTorch's dispatcher may be gone before it.
  static const auto* const all = [] {
    auto made =
        std::make_unique<torch::Library>(torch::Library::IMPL, "_", c10::DispatchKey::DeferredInit, __FILE__, __LINE__);
    made->fallback(torch::CppFunction::makeFromBoxedFunction<&trace_fallback>());
    return made.release();
  }();
  static const auto* const matmul = [] {
    auto made =
        std::make_unique<torch::Library>(torch::Library::IMPL, "aten", c10::DispatchKey::Fake, __FILE__, __LINE__);
    made->impl("matmul", torch::CppFunction::makeFromBoxedFunction<&matmul_of_fakes>());
    return made.release();
  }();
  static_cast<void>(all);
  static_cast<void>(matmul);
}

}  // namespace rehearse::capture
