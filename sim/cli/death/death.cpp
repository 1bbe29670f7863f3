// SPDX-License-Identifier: BSD-3-Clause
#include "cli/death/death.h"

#include <fmt/format.h>

#include "cli/death/signals.h"
#include "record/begun_report.h"

namespace rehearse::cli {
namespace {

// For a process that ended before it could record anything. The text suggests causes, because the reader of the report
// may not have started the process.
constexpr const char* kFromOutside =
    "without a word, as SIGKILL ends one (the system sends it when memory is short, as do `kill -9` and job managers),";

std::string interrupt_headline(const CrashRecord& crash) {
  auto how = fmt::format("ended by a second {}", signal_text(crash.signal));
  if (crash.rank < 0) return how;
  const std::string call = crash.call.data();
  const auto doing = call.empty() ? "computes and made no call at which it could be ended" : "is blocked in " + call;
  return fmt::format("rank {} {}: {}", crash.rank, doing, how);
}

Report begun_report_of(const sim::Scenario& scenario, const CrashRecord& crash) {
  Report report = sim::begun_report(scenario.world, scenario.program);
  report.faults = faults_of(crash);
  return report;
}

// The process ended without a signal: the rank never returned from its call, or ended the process itself.
Report report_on_early_end(const sim::Scenario& scenario, const CrashRecord& crash) {
  Report report = begun_report_of(scenario, crash);
  report.verdict = crash.verdict;
  report.headline = crash.headline.data();
  const std::string call = crash.call.data(), doing = crash.doing.data();
  const bool blocked = crash.state == RankOutcome::stopped && !call.empty();
  report.rank_lines.push_back(line_of(crash, blocked ? RankOutcome::blocked : crash.state,
                                      blocked ? fmt::format("{}, and {}", call, doing) : doing));
  report.hint = site_of(crash).how_to_see_lines();
  return report;
}

}  // namespace

std::string past_its_time(const Arguments& arguments) {
  return fmt::format("did not end within {} s (--time-limit)", arguments.time_limit->count());
}

void say_who_interrupted(Report& report, const Arguments& arguments, bool is_past_its_time) {
  if (report.verdict != Verdict::interrupted) return;
  if (is_past_its_time) {
    report.headline = past_its_time(arguments) + ": " + report.headline;
  } else if (first_signal() != 0) {
    report.headline = fmt::format("ended by {}: {}", signal_text(first_signal()), report.headline);
  }
}

std::string killed_headline(const Arguments& arguments, const CrashRecord& crash) {
  auto headline = past_its_time(arguments) + " and had to be killed";
  if (crash.rank < 0) return headline;
  const std::string call = crash.call.data();
  return fmt::format("{}: rank {} {}", headline, crash.rank, call.empty() ? "computes" : "is blocked in " + call);
}

std::string crash_headline(const CrashRecord& crash, const std::string& manner) {
  if (is_internal(crash)) return crash.failed_check.data();
  if (crash.overflowed_stack_bytes != 0) {
    return fmt::format(
        "rank {} overflowed its stack of {} KiB, and ended the process by {}; raise `stack` under [world]", crash.rank,
        crash.overflowed_stack_bytes >> 10, signal_text(crash.signal));
  }
  if (crash.signal == 0) return fmt::format("the process ended {} in the middle of the run", manner);
  const auto by = signal_text(crash.signal);
  return crash.rank < 0 ? fmt::format("the process ended by {} outside of its ranks", by)
                        : fmt::format("rank {} ended the process by {}", crash.rank, by);
}

Report report_on_death(const sim::Scenario& scenario, Verdict verdict, std::string headline, const CrashRecord& crash) {
  Report report = begun_report_of(scenario, crash);
  report.verdict = verdict;
  report.headline = std::move(headline);
  if (crash.rank < 0) return report;
  const std::string call = crash.call.data();
  if (verdict == Verdict::crashed) {
    report.rank_lines.push_back(
        line_of(crash, is_internal(crash) ? RankOutcome::stopped : RankOutcome::failed, signal_text(crash.signal)));
  } else {
    report.rank_lines.push_back(line_of(crash, call.empty() ? RankOutcome::stopped : RankOutcome::blocked, call));
  }
  report.hint = site_of(crash).how_to_see_lines();
  return report;
}

Report report_on_death(const sim::Scenario& scenario, const Arguments& arguments, const CrashRecord& crash) {
  // The record has SIGXCPU only if the time limit ended the run (Watcher::end_overdue()).
  if (arguments.time_limit && crash.signal == SIGXCPU)
    return report_on_death(scenario, Verdict::interrupted, killed_headline(arguments, crash), crash);
  if (crash.headline.front() != '\0') return report_on_early_end(scenario, crash);
  const bool interrupted = crash.signal == SIGINT || crash.signal == SIGTERM;
  return report_on_death(scenario, interrupted ? Verdict::interrupted : Verdict::crashed,
                         interrupted ? interrupt_headline(crash) : crash_headline(crash, kFromOutside), crash);
}

}  // namespace rehearse::cli
