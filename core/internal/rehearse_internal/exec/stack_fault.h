// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

namespace rehearse::exec {

// The size of the running fiber's stack where `address`, at which an access has faulted, lies right below it: the stack
// has overflowed. 0 otherwise, and outside of fibers. Async-signal-safe.
std::size_t overflowed_stack_bytes(const void* address) noexcept;

}  // namespace rehearse::exec
