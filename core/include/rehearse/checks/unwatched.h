// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/grad_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace rehearse::checks {

// While it lives, the calling fiber's operators are no part of its program: no model of computing counts them, no
// checker watches them.
class Uncounted {
 public:
  Uncounted() : keys_(kCounting) {}

 private:
  static constexpr c10::DispatchKeySet kCounting{c10::DispatchKey::TESTING_ONLY_GenericWrapper,
                                                 c10::DispatchKey::TESTING_ONLY_GenericMode};
  const c10::impl::ExcludeDispatchKeyGuard keys_;
};

// The same for operators of a checker's own: no capture sees them either, and they leave nothing for a backward.
class Unwatched {
 public:
  Unwatched() : keys_(kCaptures) {}

 private:
  static constexpr c10::DispatchKeySet kCaptures{c10::DispatchKey::Fake, c10::DispatchKey::DeferredInit,
                                                 c10::DispatchKey::AutocastCPU};
  const Uncounted uncounted_;
  const c10::impl::ExcludeDispatchKeyGuard keys_;
  const at::NoGradGuard no_grad_;
};

}  // namespace rehearse::checks
