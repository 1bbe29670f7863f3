// SPDX-License-Identifier: BSD-3-Clause
#include <csignal>
#include <optional>

#include <fmt/format.h>
#include <rehearse/exec/watchdog.h>

#include "commands.h"
#include "death.h"
#include "job.h"
#include "run_files.h"
#include "signals.h"
#include "watcher.h"

namespace rehearse::cli {
namespace {

// Runs the same once more and compares; the verdict of `first` changes if the ways part.
void check_determinism(const sim::Scenario& scenario, Console& console, Job::Outcome& first) {
  console.note("once more, to compare\n");
  Job again(scenario, console);
  const auto oracle = sim::make_oracle(scenario.world.schedule, scenario.world.seed);
  const auto second = again.run(*oracle);
  if (second.report.verdict == Verdict::interrupted) {
    first.report.verdict = Verdict::interrupted;
    first.report.headline = "in the second run, before it could be compared with the first";
  } else if (const auto difference = sim::first_difference(first.path, second.path)) {
    first.report.verdict = Verdict::nondeterminism;
    first.report.headline =
        fmt::format("two runs of seed {} took different ways: {}", scenario.world.seed, difference->text);
  } else {
    ++first.report.checks["a second run took the same way"];
  }
}

// Both runs, where there are two, within the time that there is.
Job::Outcome run_in_time(const sim::Scenario& scenario, const Arguments& arguments, Console& console, Job& job) {
  std::optional<exec::TimeLimit> limit;
  if (arguments.time_limit) limit.emplace(*arguments.time_limit, Watcher::end_overdue);
  auto outcome = job.run(*sim::make_oracle(scenario.world.schedule, scenario.world.seed));
  if (arguments.check_determinism && outcome.report.verdict != Verdict::interrupted)
    check_determinism(scenario, console, outcome);
  Report& report = outcome.report;
  if (limit && limit->is_over() && report.verdict == Verdict::interrupted)
    report.headline = past_its_time(arguments) + ": " + report.headline;
  return outcome;
}

std::string replay_line(const Arguments& arguments, const OutputFolder& folder, const Report& report) {
  const auto self = shell_word(arguments.self);
  if (report.verdict != Verdict::nondeterminism && !report.files.empty()) {
    return fmt::format("{} replay {}", self, shell_word(folder.log().string()));
  }
  // There is no log, or it holds one of the two ways, which alone does not show that there are two.
  std::string line = fmt::format("{} run {}", self, shell_word(arguments.operand));
  for (const auto& option : options_given(arguments)) line += " " + option;
  return line;
}

// Why `write` could not, or nothing.
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

// In the watcher, when the run's process dies. `problem`: why there is no log.
int died(sim::Scenario scenario, const Arguments& arguments, const OutputFolder& folder, const std::string& problem,
         const LastWords& words, Console& console) {
  scenario.output.leave_events_out();
  // Nobody else sends that: what ends this process for want of time.
  const bool overdue = arguments.time_limit && words.signal == SIGXCPU;
  Report report = overdue ? report_on_death(scenario, Verdict::interrupted, killed_headline(arguments, words), words)
                          : report_on_death(scenario, words);
  if (problem.empty()) report.files = files_of(folder, scenario);
  report.replay = replay_line(arguments, folder, report);
  const auto failed = problem_of([&] { write_report_files(folder, scenario, report); });
  if (!failed.empty()) report.files = {folder.log().string()};
  console.end_progress();
  return console.conclude(report);
}

}  // namespace

int run(const Arguments& arguments, Console& console) {
  auto scenario = scenario_of(arguments);
  scenario.world.keep_all_events = arguments.check_determinism;
  const OutputFolder folder(scenario.output.directory);
  const InterruptibleScope interruptible;
  console.note(banner(scenario));
  // A full disk costs the files, not the run and its report.
  const auto log = begun_log(scenario, arguments);
  auto problem = problem_of([&] { sim::write_run_log(folder.log(), log); });

  const Watcher watcher(
      [&](const LastWords& words) { return died(scenario, arguments, folder, problem, words, console); });
  Job job(scenario, console);
  auto outcome = run_in_time(scenario, arguments, console, job);

  Report& report = outcome.report;
  const auto left_out = leave_out_large_traces(scenario, job.world().events().size());
  if (!left_out.empty()) report.remarks.push_back(left_out);
  if (problem.empty()) {
    report.files = files_of(folder, scenario);
    report.replay = replay_line(arguments, folder, report);
    problem = problem_of([&] { write_run_files(folder, scenario, report, log, job.world()); });
  }
  if (problem.empty()) return console.conclude(report);
  report.files.clear();
  report.replay = replay_line(arguments, folder, report);
  const int code = console.conclude(report);
  Console::error(fmt::format("{}; the files of this run are missing or incomplete\n", problem));
  return code == 0 ? kExitOutput : code;
}

}  // namespace rehearse::cli
