// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace rehearse::compiler {

// While it lives, operators run below autograd and autocast, because the graph already contains what autograd and
// autocast would do. In-place operators still increment the versions of tensors.
struct BelowAutograd {
  at::AutoDispatchBelowAutograd no_autograd;
  c10::impl::ExcludeDispatchKeyGuard no_autocast{c10::autocast_dispatch_keyset};
};

}  // namespace rehearse::compiler
