// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <rehearse_internal/job/rank_memory.h>

#include "report/ranks/places.h"

namespace rehearse::sim {

// How much memory the tensors of ranks took; ranks with the same text share a line. For example "memory: ranks 0-3
// peaked at 24MiB of 80GiB: 16MiB at model.cpp:12 in forward, 8MiB at ...". `limit`: the limit of each rank; 0: none.
std::vector<std::string> memory_remarks(const std::vector<RankMemory>& memory, std::uint64_t limit,
                                        const Places& places);

}  // namespace rehearse::sim
