// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/exec/native_scope.h>

#include "fiber.h"

namespace rehearse::exec {

NativeScope::NativeScope() noexcept : fiber_(current_fiber()) {
  if (fiber_ == nullptr) return;
  t_current_fiber = nullptr;
  t_native_fiber = fiber_;
}

NativeScope::~NativeScope() {
  if (fiber_ == nullptr) return;
  t_current_fiber = fiber_;
  t_native_fiber = nullptr;
}

}  // namespace rehearse::exec
