// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/capture/errors.h>

namespace rehearse::capture {

// The refusal for code that keeps a tensor which is none of its results. `where`: the call that made the tensor.
NotCapturable kept_tensor(const exec::CallSite& where);

}  // namespace rehearse::capture
