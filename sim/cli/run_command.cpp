// SPDX-License-Identifier: BSD-3-Clause
#include <csignal>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <rehearse_internal/exec/watchdog.h>

#include "cli/commands.h"
#include "cli/death/death.h"
#include "cli/death/signals.h"
#include "cli/death/watcher.h"
#include "cli/expectation.h"
#include "cli/job.h"

namespace rehearse::cli {
namespace {

// Runs the scenario again until there are so many runs. If one differs or is interrupted, changes the verdict of
// `first`.
void check_determinism(const sim::Scenario& scenario, Console& console, int runs, sim::Attempt& first) {
  for (int run = 2; run <= runs; ++run) {
    console.note(runs == 2 ? "a second run, to compare\n" : fmt::format("run {} of {}, to compare\n", run, runs));
    if (!sim::took_same_way(first, run_scenario(scenario, console))) return;
    ++first.report.checks[runs == 2 ? "a second run was the same" : "other runs were the same"];
  }
}

// Makes the run, and with --check-determinism others to compare, within the time limit.
sim::Attempt run_in_time(const sim::Scenario& scenario, const Arguments& arguments, Console& console) {
  std::optional<exec::TimeLimit> limit;
  if (arguments.time_limit) limit.emplace(*arguments.time_limit, Watcher::end_overdue);
  auto attempt = run_scenario(scenario, console);
  Report& report = attempt.report;
  if (arguments.check_determinism && report.verdict != Verdict::interrupted)
    check_determinism(scenario, console, arguments.check_determinism, attempt);
  say_who_interrupted(report, arguments, limit && limit->is_over());
  return attempt;
}

std::string replay_line(const Arguments& arguments, const OutputFolder& folder, const Report& report) {
  const auto self = command_word(arguments.self);
  if (report.verdict != Verdict::nondeterminism && !report.files.empty()) {
    return fmt::format("{} replay {}", self, shell_word(folder.log().string()));
  }
  // Name the command instead of a replay: there is no log, or the log holds only one of two runs that differ, so its
  // replay cannot show the difference.
  std::string line = fmt::format("{} run {}", self, shell_word(arguments.operand));
  for (const auto& option : options_given(arguments)) line += " " + option;
  return line;
}

// Returns why `write` failed; empty: it succeeded.
template <class Write>
std::string problem_of(const Write& write) {
  try {
    write();
    return "";
  } catch (const OutputError& error) {
    return error.what();
  } catch (const sim::RunLogError& error) {
    return error.what();
  }
}

// Runs in the watching process when the run's process dies. `problem`: why there is no log.
int died(sim::Scenario scenario, const Arguments& arguments, OutputFolder& folder, const std::string& problem,
         const CrashRecord& crash, Console& console) {
  folder.keep();
  scenario.output.leave_events_out();
  // The record has SIGXCPU only if the time limit ended the run (Watcher::end_overdue()).
  const bool overdue = arguments.time_limit && crash.signal == SIGXCPU;
  Report report = overdue ? report_on_death(scenario, Verdict::interrupted, killed_headline(arguments, crash), crash)
                          : report_on_death(scenario, crash);
  if (problem.empty()) report.files = sim::files_of(folder.path(), scenario.output);
  report.replay = replay_line(arguments, folder, report);
  const auto failed = problem_of([&] { sim::write_report_files(folder.path(), scenario.output, {report}); });
  if (!failed.empty() && !report.files.empty()) report.files = {folder.log().string()};
  console.end_progress();
  return conclude(scenario, report, console);
}

}  // namespace

int run(const Arguments& arguments, Console& console) {
  auto scenario = scenario_of(arguments);
  if (scenario.world.mode == Mode::real) return run_for_real(arguments, std::move(scenario), console);
  scenario.world.keep_all_events = arguments.check_determinism != 0;
  const FolderLock lock(scenario.output.directory);
  OutputFolder folder(scenario.output.directory);
  folder.set_ranks_aside();  // else `merge` would take them for ranks of this run
  const InterruptibleScope interruptible;
  console.note(banner(scenario));
  // A full disk costs the files, but not the run and its report.
  const auto log = begun_log(scenario, arguments);
  auto problem = problem_of([&] { sim::write_run_log(folder.log(), log); });

  const Watcher watcher(
      [&](const CrashRecord& crash) { return died(scenario, arguments, folder, problem, crash, console); });
  auto attempt = run_in_time(scenario, arguments, console);
  folder.keep();

  Report& report = attempt.report;
  const auto left_out = sim::leave_out_large_files(scenario.output, attempt.events().size());
  if (!left_out.empty()) report.remarks.push_back(left_out);
  if (problem.empty()) {
    report.files = sim::files_of(folder.path(), scenario.output);
    report.replay = replay_line(arguments, folder, report);
    problem = problem_of([&] { write_run_files(folder, scenario, attempt, log); });
  }
  if (!problem.empty()) {
    report.files.clear();
    report.replay = replay_line(arguments, folder, report);
  }
  return conclude(scenario, report, console, problem);
}

}  // namespace rehearse::cli
