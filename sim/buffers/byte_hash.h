// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "footprint.h"

namespace rehearse::sim {

// A hash of the bytes as they are now; equal bytes give equal hashes. If one of Footprint::runs() is longer than 256
// KiB, the function reads only that run's first and last 64 KiB and, between them, 2,048 samples of 64 bytes at equal
// distances. So it may miss a change of few bytes between the samples. If Footprint::runs() is empty because there are
// too many runs, the function reads nothing.
std::uint64_t hash_of(const Footprint& bytes) noexcept;

}  // namespace rehearse::sim
