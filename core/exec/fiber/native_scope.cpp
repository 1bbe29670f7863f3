// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/exec/native_scope.h>

#include <utility>

#include "fiber.h"

namespace rehearse::exec {
namespace {

constexpr NativeCode kLibraryCall{"a call into a library that waits by itself (exec::NativeScope)", "call"};

}  // namespace

NativeScope::NativeScope() noexcept : NativeScope(current_fiber(), kLibraryCall) {}

NativeScope::NativeScope(Fiber* fiber, const NativeCode& code) noexcept
    : current_before_(std::exchange(t_current_fiber, nullptr)),
      native_before_(t_native_fiber),
      code_before_(t_native_code) {
  if (fiber == nullptr) return;
  t_native_fiber = fiber;
  t_native_code = &code;
}

NativeScope::~NativeScope() {
  t_current_fiber = current_before_;
  t_native_fiber = native_before_;
  t_native_code = code_before_;
}

}  // namespace rehearse::exec
