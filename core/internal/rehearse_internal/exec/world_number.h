// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace rehearse::exec {

// The number of the world that runs on the calling thread. Worlds of a process are numbered from 1; 0: no world runs.
// For data that outlives a rank's fibers: equal rank numbers in two worlds are different ranks.
std::uint64_t world_number() noexcept;

}  // namespace rehearse::exec
