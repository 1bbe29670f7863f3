// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <c10/core/DispatchKeySet.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace rehearse::capture {

// While it lives, operators reach only the kernels of back ends, whatever keys the caller has set: no autograd,
// autocast, capture or functorch.
class BelowAutograd {
 public:
  BelowAutograd()
      : guard_(c10::DispatchKeySet(c10::DispatchKey::BackendSelect),
               c10::default_excluded_set | c10::autograd_dispatch_keyset_with_ADInplaceOrView) {}

 private:
  c10::impl::ForceDispatchKeyGuard guard_;
};

}  // namespace rehearse::capture
