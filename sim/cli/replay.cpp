// SPDX-License-Identifier: BSD-3-Clause
#include <filesystem>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <rehearse/job/program.h>
#include <rehearse_internal/exec/watchdog.h>
#include <rehearse_internal/sim/run_log.h>

#include "cli/commands.h"
#include "cli/death/death.h"
#include "cli/death/signals.h"
#include "cli/death/watcher.h"
#include "cli/grammar/usage_error.h"
#include "cli/job.h"
#include "cli/probe.h"
#include "record/begun_report.h"
#include "run/attempt.h"

namespace rehearse::cli {
namespace {

Report replayed(const sim::RunLog& log, const sim::Scenario& scenario, Console& console) {
  std::optional<sim::Attempt> attempt;
  const auto run = [&](Oracle& answers) -> const Report& {
    return attempt.emplace(run_scenario(scenario, console, &answers)).report;
  };
  const auto other_way = sim::replay_log(log, run);
  if (!other_way.empty()) {
    Report report = sim::begun_report(scenario.world, scenario.program);
    report.verdict = Verdict::nondeterminism;
    report.headline = other_way;
    return report;
  }
  Report& report = attempt->report;
  if (sim::ended_as_log(log, report)) {
    console.note(fmt::format("the same run as in the log, identity={:016x}\n", report.identity));
    if (report.verdict == Verdict::interrupted)
      report.headline = "the log ends here, because its run was interrupted: " + report.headline;
  }
  return std::move(report);
}

bool is_scenario(const std::string& operand) {
  return std::filesystem::path(operand).extension() == ".toml" || find_program(operand) != nullptr;
}

int told(Report report, const Arguments& arguments, Console& console) {
  report.replay = seed_replay_line(arguments);
  return console.conclude(report);
}

template <class Run>
Report in_time(const Arguments& arguments, const Run& run) {
  std::optional<exec::TimeLimit> limit;
  if (arguments.time_limit) limit.emplace(*arguments.time_limit, Watcher::end_overdue);
  Report report = run();
  say_who_interrupted(report, arguments, limit && limit->is_over());
  return report;
}

// `run` makes one run of the scenario and returns its report.
template <class Run>
int watched(const sim::Scenario& scenario, const Arguments& arguments, Console& console, const Run& run) {
  const InterruptibleScope interruptible;
  const Watcher watcher([&](const CrashRecord& crash) {
    console.end_progress();
    return told(report_on_death(scenario, arguments, crash), arguments, console);
  });
  return told(in_time(arguments, run), arguments, console);
}

// Refuses options that would change the run: the log decides everything about it, also ranks, faults and checkers.
void require_no_changes(const Arguments& log) {
  auto given = log;
  given.take_back("--seed");
  const auto options = options_given(given);
  if (options.empty()) return;
  throw UsageError(fmt::format("{}: {} is for a scenario; the log says what was run", log.operand, options.front()));
}

int run_seed(sim::Scenario scenario, const Arguments& arguments, Console& console) {
  scenario.output.leave_events_out();
  console.note(banner(scenario));
  return watched(scenario, arguments, console, [&] { return run_scenario(scenario, console).report; });
}

sim::Scenario scenario_in(const sim::RunLog& log, const std::string& file) {
  if (!log.scenario_text.empty()) return sim::parse_scenario(log.scenario_text, file);
  throw UsageError(
      fmt::format("{}: belongs to the test {}; run that with REHEARSE_REPLAY={}", file, log.program, shell_word(file)));
}

}  // namespace

int replay(const Arguments& arguments, Console& console) {
  if (is_scenario(arguments.operand)) {
    auto scenario = scenario_of(arguments);
    require_simulation(scenario, arguments.operand, "replay");
    schedule_as_sweeps_do(scenario, probe_steps(arguments, scenario));
    auto resolved = arguments;
    resolve(scenario.world, resolved);
    return run_seed(std::move(scenario), resolved, console);
  }
  require_no_folder(arguments.operand);
  require_no_changes(arguments);
  const auto log = sim::read_run_log(arguments.operand);
  auto scenario = scenario_in(log, arguments.operand);
  if (arguments.gives("--seed")) {
    set_given(arguments, scenario);
    return run_seed(std::move(scenario), arguments, console);
  }
  scenario.output.leave_events_out();
  console.note(banner(scenario));
  if (log.build != sim::executable_build_id()) {
    console.note("another build of the program wrote this log, so the replay may differ\n");
  }
  if (log.finished) return watched(scenario, arguments, console, [&] { return replayed(log, scenario, console); });
  // The log has no decisions, but it has the seed.
  console.note("the run in the log did not end, so this runs its seed from the start\n");
  return watched(scenario, arguments, console, [&] { return run_scenario(scenario, console).report; });
}

}  // namespace rehearse::cli
