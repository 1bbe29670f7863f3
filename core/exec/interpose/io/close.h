// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>

namespace rehearse::exec::interpose {

// Answers syscall() where it would close a file that is kept open. Nothing where the kernel is to answer.
std::optional<long> close_by_number(long number, long a1, long a2, long a3);

}  // namespace rehearse::exec::interpose
