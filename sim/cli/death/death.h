// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <rehearse_internal/sim/scenario.h>

#include "cli/death/crash_record.h"
#include "cli/grammar/arguments.h"

// Runs that their process did not survive, told by another process.
namespace rehearse::cli {

// The facts of the scenario, and a line for the rank that ran, if that is known. Files and replay line are the
// caller's.
Report report_on_death(const sim::Scenario& scenario, Verdict verdict, std::string headline, const CrashRecord& crash);

// "rank 2 ended the process by SIGSEGV (Segmentation fault)"; `manner` says how where nothing was noted.
std::string crash_headline(const CrashRecord& crash, const std::string& manner);

// "did not end within 10 s (--time-limit)"
std::string past_its_time(const Arguments& arguments);

// The same, of one that did not end when it was asked to: "... and had to be killed: rank 2 computes"
std::string killed_headline(const Arguments& arguments, const CrashRecord& crash);

// What the rank of such a process did, as far as anybody knows.
inline constexpr const char* kWithoutAWord = "its process ended without a word";

// The report of a run that crashed, or that a second Ctrl-C ended, with its verdict.
Report report_on_death(const sim::Scenario& scenario, const CrashRecord& crash);

}  // namespace rehearse::cli
