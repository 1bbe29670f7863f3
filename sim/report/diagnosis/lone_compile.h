// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>

#include <rehearse/job/verdict.h>
#include <rehearse_internal/job/compile_journal.h>

#include <rehearse_internal/job/run_record.h>

namespace rehearse::sim {

// The last call in which some ranks recompiled a function and others did not, and which is behind the run's end; none:
// there is no such call. It is behind it where
//   others wait for one of those ranks, which has not called the function since (it compiles for too long, or never
//   came back to them), or what it made has collectives, and the rank waits in vain or is waited for, or the rank is
//   one of the few that made another call than the rest.
std::optional<compiler::Divergence> lone_compile_behind(const RunRecord& record, Verdict verdict);

}  // namespace rehearse::sim
