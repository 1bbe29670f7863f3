// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>

#include <c10/util/Exception.h>

#include <rehearse/capture/errors.h>

namespace rehearse::capture {

// True for LibTorch's own error about a fake tensor's memory.
bool is_data_access(const c10::Error& error);

// Runs `function`. Turns LibTorch's own error about a fake tensor's memory into DataAccess, with the user's line if it
// is known. Other exceptions pass.
void with_typed_errors(const std::function<void()>& function);

}  // namespace rehearse::capture
