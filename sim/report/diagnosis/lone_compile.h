// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>

#include <rehearse/job/verdict.h>
#include <rehearse_internal/job/compile_journal.h>

#include <rehearse_internal/job/run_record.h>

namespace rehearse::sim {

// The last call in which only some ranks recompiled a function and which caused the run's end; nothing if there is
// none. It caused the end in one of three cases:
// - Others wait for a rank whose latest call of the function was this one: it compiles for too long, or never came
//   back.
// - The compiled code has collectives, and a rank that compiled it waits, or others wait for it.
// - A rank that compiled it is one of the few whose call differs from the majority's.
std::optional<compiler::Divergence> lone_compile_behind(const RunRecord& record, Verdict verdict);

}  // namespace rehearse::sim
