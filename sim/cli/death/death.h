// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <rehearse_internal/sim/scenario.h>

#include "cli/death/crash_record.h"
#include "cli/grammar/arguments.h"

// Makes reports on runs whose process died. Another process, which survives, calls these functions.
namespace rehearse::cli {

// Contains the scenario's facts, and a line for the rank that ran, if that rank is known. The caller adds files and
// replay line.
Report report_on_death(const sim::Scenario& scenario, Verdict verdict, std::string headline, const CrashRecord& crash);

// For example "rank 2 ended the process by SIGSEGV (Segmentation fault)". `manner` says how the process ended if it
// recorded nothing.
std::string crash_headline(const CrashRecord& crash, const std::string& manner);

// For example "did not end within 10 s (--time-limit)".
std::string past_its_time(const Arguments& arguments);

// Puts into the headline of an interrupted run who ended it: the time limit, or else a signal ("ended by SIGINT
// (Interrupt): ").
void say_who_interrupted(Report& report, const Arguments& arguments, bool is_past_its_time);

// For example "did not end within 10 s (--time-limit) and had to be killed: rank 2 computes".
std::string killed_headline(const Arguments& arguments, const CrashRecord& crash);

// How the rank of a process that died has ended, if nobody knows more.
inline constexpr const char* kWithoutAWord = "its process ended without a word";

// The report, with its verdict, on a run that crashed, that ended its process early, that a second Ctrl-C ended, or
// that was killed because it did not end within its time limit.
Report report_on_death(const sim::Scenario& scenario, const Arguments& arguments, const CrashRecord& crash);

}  // namespace rehearse::cli
