// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace rehearse::exec {

// The address after add_address_alias() has mapped it; most map to themselves.
std::uintptr_t canonical_address(std::uintptr_t address) noexcept;

}  // namespace rehearse::exec
