// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>

#include <rehearse/capture/errors.h>

namespace rehearse::capture {

// Runs `function`. Turns LibTorch's own error about a fake tensor's memory into DataAccess, with the user's line if it
// is known. Other exceptions pass.
void with_typed_errors(const std::function<void()>& function);

}  // namespace rehearse::capture
