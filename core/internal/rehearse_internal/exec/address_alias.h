// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <span>

namespace rehearse::exec {

// For a file that is loaded more than once: from now on, call sites treat an address inside `copy` as the address at
// the same offset from `original`, so calls from two copies of one line count as calls from one place. Holds for the
// life of the process. Thread safe.
void add_address_alias(std::span<const std::byte> copy, const std::byte* original);

}  // namespace rehearse::exec
