// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "footprint.h"

namespace rehearse::sim {

// A hash of the present bytes: equal for equal bytes. If there are more than 256 KiB, it reads the first and the last
// 64 KiB and, between them, 2,048 places of 64 bytes at equal distances: a change of few bytes there may not show.
std::uint64_t hash_of(const Footprint& bytes) noexcept;

}  // namespace rehearse::sim
