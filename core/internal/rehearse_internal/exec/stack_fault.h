// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

namespace rehearse::exec {

// If an access to `address` has faulted, returns the size of the running fiber's stack if the address is right below
// that stack, which means that it has overflowed. Returns 0 otherwise, and outside of fibers. Async-signal-safe.
std::size_t overflowed_stack_bytes(const void* address) noexcept;

}  // namespace rehearse::exec
