// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/exec/native_scope.h>

#include <utility>

#include "fiber.h"

namespace rehearse::exec {
namespace {

constexpr NativePlace kLibraryCall{"a call into a library that waits by itself (exec::NativeScope)", "call"};

}  // namespace

NativeScope::NativeScope() noexcept : NativeScope(current_fiber(), kLibraryCall) {}

NativeScope::NativeScope(Fiber* fiber, const NativePlace& place) noexcept
    : current_before_(std::exchange(t_current_fiber, nullptr)),
      native_before_(t_native_fiber),
      place_before_(t_native_place) {
  if (fiber == nullptr) return;
  t_native_fiber = fiber;
  t_native_place = &place;
}

NativeScope::~NativeScope() {
  t_current_fiber = current_before_;
  t_native_fiber = native_before_;
  t_native_place = place_before_;
}

}  // namespace rehearse::exec
