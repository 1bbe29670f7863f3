// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <span>

namespace rehearse::exec {

// A file that is loaded more than once: from now on addresses inside of `copy` are told as those at the same distance
// from `original`, so that calls from copies of one line are calls from one place, and lines are looked up once. For
// the life of the process. Thread safe.
void add_address_alias(std::span<const std::byte> copy, const std::byte* original);

}  // namespace rehearse::exec
