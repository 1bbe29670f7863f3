// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace rehearse::exec {

// Maps an address in a copy of code to the original code, if add_address_alias() has named that copy. Returns other
// addresses unchanged.
std::uintptr_t canonical_address(std::uintptr_t address) noexcept;

}  // namespace rehearse::exec
