// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <rehearse/sim/world_options.h>
#include <rehearse_internal/job/rank_memory.h>
#include <rehearse_internal/job/run_record.h>
#include "report/ranks/places.h"

namespace rehearse::sim {

// Remarks from the record of a run: calls for whose end nobody waited, messages that were shorter than their receives,
// threads that ranks started while they initialised static variables, RunRecord::habits, and functions that only some
// ranks recompiled. If the run failed, also RunRecord::notes; if not, also calls that were left behind when other calls
// failed. Leaves out facts that `headline` already has.
std::vector<std::string> remarks_of(const RunRecord& record, const Places& places, const std::string& headline,
                                    bool failed);

// Names the keys that ask for what only simulations can do, because a real run ignores them: "[checks] replicas,
// buffers and [world] memory work in simulations only: this real run ignored them". Empty if there are none, and for a
// simulation.
std::vector<std::string> real_remarks(const WorldOptions& options);

// How much memory the tensors of ranks took; ranks with the same text share a line. For example "memory: ranks 0-3
// peaked at 24MiB of 80GiB: 16MiB at model.cpp:12 in forward, 8MiB at ...". `limit`: the limit of each rank; 0: none.
std::vector<std::string> memory_remarks(const std::vector<RankMemory>& memory, std::uint64_t limit,
                                        const Places& places);

// For a failed run whose ranks had resumed from a checkpoint. One line for each of the last three recoveries says which
// ranks resumed, and from which checkpoint. The last line says after which step the saved states first differed from
// those of the run without faults, or that they never differed. Empty if there was no run without faults to compare
// with (RunRecord::without_faults).
std::vector<std::string> recovery_remarks(const RunRecord& record, const Places& places);

}  // namespace rehearse::sim
