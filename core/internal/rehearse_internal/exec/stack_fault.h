// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

namespace rehearse::exec {

// Recognises a stack overflow from `address`, at which an access has faulted: if `address` is right below the running
// fiber's stack, returns the size of that stack. Returns 0 otherwise, and outside of fibers. Async-signal-safe.
std::size_t overflowed_stack_bytes(const void* address) noexcept;

}  // namespace rehearse::exec
