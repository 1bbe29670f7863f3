// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include <rehearse_internal/sim/random_stream.h>

namespace rehearse::sim {

// Draws `count` of the first `steps` choices of a run, counted from 1; the same one may come twice. If `steps` is 0, it
// draws the number of steps first: one of the 13 powers of two from 16 to 65,536.
std::vector<std::uint64_t> draw_points(RandomStream& stream, std::uint32_t count, std::uint64_t steps);

}  // namespace rehearse::sim
