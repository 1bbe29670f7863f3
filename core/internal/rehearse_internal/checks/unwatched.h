// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/grad_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <rehearse_internal/operators/seen_operators.h>

namespace rehearse::checks {

// While it lives, the calling fiber's operators are a checker's own and do not count as the user's: watchers and
// captures do not see them, and they record nothing for a backward.
class Unwatched {
 public:
  Unwatched() : keys_(kCaptures) {}

 private:
  static constexpr c10::DispatchKeySet kCaptures{c10::DispatchKey::Fake, c10::DispatchKey::DeferredInit,
                                                 c10::DispatchKey::AutocastCPU};
  const operators::UnseenOperators unseen_;
  const c10::impl::ExcludeDispatchKeyGuard keys_;
  const at::NoGradGuard no_grad_;
};

}  // namespace rehearse::checks
