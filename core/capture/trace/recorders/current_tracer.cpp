// SPDX-License-Identifier: BSD-3-Clause
#include "capture/trace/recorders/current_tracer.h"

#include <atomic>

#include <rehearse_internal/exec/check.h>
#include <rehearse_internal/exec/fiber_local.h>

namespace rehearse::capture {
namespace {

struct Current {
  Tracer* tracer = nullptr;
};
const exec::FiberLocal<Current> current;

std::atomic<int> captures = 0;

}  // namespace

Tracer* current_tracer() noexcept {
  const Current* const found = current.find();
  return found ? found->tracer : nullptr;
}

bool is_any_captured() noexcept { return captures.load(std::memory_order_relaxed) != 0; }

CountedCapture::CountedCapture() noexcept { captures.fetch_add(1, std::memory_order_relaxed); }
CountedCapture::~CountedCapture() {
  const int before = captures.fetch_sub(1, std::memory_order_relaxed);
  REHEARSE_CHECK(before > 0, before);
}

TracerScope::TracerScope(Tracer& tracer) : outer_(std::exchange(current->tracer, &tracer)) {}
TracerScope::~TracerScope() { current->tracer = outer_; }

OutsideOfCapture::OutsideOfCapture()
    : tracer_(std::exchange(current->tracer, nullptr)), keys_([] {
        const c10::DispatchKeySet ours(
            {c10::DispatchKey::Fake, c10::DispatchKey::DeferredInit, c10::DispatchKey::Functionalize});
        c10::impl::LocalDispatchKeySet keys = c10::impl::tls_local_dispatch_key_set();
        keys.included_ = keys.included_ - ours;
        return keys;
      }()) {}
OutsideOfCapture::~OutsideOfCapture() { current->tracer = tracer_; }

}  // namespace rehearse::capture
