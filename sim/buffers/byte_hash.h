// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "footprint.h"

namespace rehearse::sim {

// Of the bytes that are there now: equal for equal bytes. Of more than 256 KiB it reads the first and the last 64 KiB
// and, of what lies between, 2,048 places of 64 bytes at equal distances: a change of few bytes there may not show.
std::uint64_t hash_of(const Footprint& bytes) noexcept;

}  // namespace rehearse::sim
