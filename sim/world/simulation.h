// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

#include <rehearse/exec/oracle.h>
#include <rehearse/job/runner.h>
#include <rehearse/sim/world.h>
#include <rehearse_internal/job/run_record.h>
#include <rehearse_internal/job/scratch_folders.h>

namespace rehearse::sim {

// The part of the options that real runs use, too, and the transport, which only real runs use.
RunRequest request_of(const WorldOptions& options);

// Runs `body` on every rank of a fresh world; a rank that restarts runs it again. Blocks until all ranks have ended.
// Throws what the oracle throws, and std::system_error if the system has no room for so many ranks.
std::unique_ptr<RunRecord> simulate(const WorldOptions& options, Oracle& oracle, const World::Body& body,
                                    ScratchFolders& scratch, const ShowProgress& show);

}  // namespace rehearse::sim
