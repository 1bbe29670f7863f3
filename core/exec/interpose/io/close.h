// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>

namespace rehearse::exec::interpose {

// Handles syscall() if it would close a file that is kept open. nullopt: let the kernel handle it.
std::optional<long> close_by_number(long number, long a1, long a2, long a3);

}  // namespace rehearse::exec::interpose
