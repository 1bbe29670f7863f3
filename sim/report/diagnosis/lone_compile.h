// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>

#include <rehearse/job/verdict.h>
#include <rehearse_internal/job/compile_journal.h>

#include <rehearse_internal/job/run_record.h>

namespace rehearse::sim {

// Finds the last call that caused the run's end because only some ranks recompiled a function in it. Returns nothing if
// there is no such call. A call caused the end in one of three cases:
// - Other ranks wait for a rank that compiled in this call and has not called the function since: it compiles for too
//   long, or never came back.
// - The compiled code has collectives, and a rank that compiled it waits, or other ranks wait for that rank.
// - Calls do not match, and a suspect made a call that differs from the majority's or, if there is no majority, any of
//   these calls. If the compiled code has collectives, every rank that compiled it is a suspect. Otherwise a rank that
//   compiled it is a suspect only if it has not called the function since.
std::optional<compiler::Divergence> lone_compile_behind(const RunRecord& record, Verdict verdict);

}  // namespace rehearse::sim
