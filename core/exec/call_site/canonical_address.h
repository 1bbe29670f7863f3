// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace rehearse::exec {

// The address as add_address_alias() has it; most are their own.
std::uintptr_t canonical_address(std::uintptr_t address) noexcept;

}  // namespace rehearse::exec
