// SPDX-License-Identifier: BSD-3-Clause
#include <ostream>

#include <fmt/format.h>
#include <rehearse/sim/chrome_trace.h>
#include <rehearse/sim/report_writers.h>
#include <rehearse/sim/run_log.h>

#include "commands.h"
#include "job.h"
#include "output_folder.h"

namespace rehearse::cli {
namespace {

sim::Scenario scenario_of(const Arguments& arguments) {
  auto scenario = sim::read_scenario(arguments.operand);
  if (arguments.seed) scenario.world.seed = *arguments.seed;
  if (arguments.ranks) scenario.world.ranks = *arguments.ranks;
  if (!arguments.output.empty()) scenario.output.directory = arguments.output;
  return scenario;
}

std::vector<std::string> options_of(const Arguments& arguments) {
  std::vector<std::string> options;
  if (arguments.seed) options.push_back(fmt::format("--seed={}", *arguments.seed));
  if (arguments.ranks) options.push_back(fmt::format("--ranks={}", *arguments.ranks));
  if (arguments.check_determinism) options.emplace_back("--check-determinism");
  return options;
}

// The log of a run that has not ended yet; it is on disk before the run is, for runs that never come back.
sim::RunLog begun(const sim::Scenario& scenario, const Arguments& arguments) {
  sim::RunLog log;
  log.program = scenario.program;
  log.seed = scenario.world.seed;
  log.build = sim::executable_build_id();
  log.scenario_path = arguments.operand;
  log.scenario_text = sim::to_toml(scenario);
  log.options = options_of(arguments);
  return log;
}

// Runs the same once more and compares; the verdict of `first` changes if the ways part.
void check_determinism(const sim::Scenario& scenario, Console& console, Job::Outcome& first) {
  console.note("once more, to compare\n");
  Job again(scenario, console);
  const auto oracle = seeded_oracle(scenario.world);
  const auto second = again.run(*oracle);
  if (const auto difference = sim::first_difference(first.path, second.path)) {
    first.report.verdict = Verdict::nondeterminism;
    first.report.headline =
        fmt::format("two runs of seed {} took different ways: {}", scenario.world.seed, difference->text);
  } else {
    ++first.report.checks["a second run took the same way"];
  }
}

void write_files(const OutputFolder& folder, const sim::Scenario& scenario, Report& report, sim::RunLog log,
                 const World& world) {
  const auto& output = scenario.output;
  report.files.push_back(folder.log().string());
  if (output.report) report.files.push_back(folder.report().string());
  if (output.json) report.files.push_back(folder.json().string());
  if (output.trace) report.files.push_back(folder.trace().string());
  if (output.report) write_file(folder.report(), [&](std::ostream& out) { out << sim::to_text(report); });
  if (output.json) write_file(folder.json(), [&](std::ostream& out) { out << sim::to_json(report); });
  if (output.trace) {
    write_file(folder.trace(),
               [&](std::ostream& out) { sim::write_chrome_trace(out, world.events(), report); });
  }
  const auto decisions = world.decisions().decisions();
  log.finished = {report, {decisions.begin(), decisions.end()}};
  sim::write_run_log(folder.log(), log);
}

std::string replay_line(const Arguments& arguments, const OutputFolder& folder, const Report& report) {
  const auto self = shell_word(arguments.self);
  if (report.verdict != Verdict::nondeterminism) {
    return fmt::format("{} replay {}", self, shell_word(folder.log().string()));
  }
  // A log of one of the two ways would not show that there are two.
  std::string line = fmt::format("{} run {}", self, shell_word(arguments.operand));
  for (const auto& option : options_of(arguments)) line += " " + option;
  return line;
}

}  // namespace

int run(const Arguments& arguments, Console& console) {
  const auto scenario = scenario_of(arguments);
  const OutputFolder folder(scenario.output.directory);
  console.note(banner(scenario));
  const auto log = begun(scenario, arguments);
  sim::write_run_log(folder.log(), log);

  Job job(scenario, console);
  const auto oracle = seeded_oracle(scenario.world);
  auto outcome = job.run(*oracle);
  if (arguments.check_determinism) check_determinism(scenario, console, outcome);

  Report& report = outcome.report;
  report.replay = replay_line(arguments, folder, report);
  write_files(folder, scenario, report, log, job.world());
  console.print(report);
  return exit_code(report.verdict);
}

}  // namespace rehearse::cli
