// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include <rehearse/job/fault_line.h>

namespace rehearse::sim {

// What faults have done to a run, for its identity: what each did, where and when; not what had brought it about.
// 0: none fired.
std::uint64_t hash_of_fired(const std::vector<FaultLine>& faults);

}  // namespace rehearse::sim
