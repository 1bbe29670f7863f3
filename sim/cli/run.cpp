// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include "commands.h"
#include "job.h"
#include "run_files.h"

namespace rehearse::cli {
namespace {

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

std::string replay_line(const Arguments& arguments, const OutputFolder& folder, const Report& report) {
  const auto self = shell_word(arguments.self);
  if (report.verdict != Verdict::nondeterminism) {
    return fmt::format("{} replay {}", self, shell_word(folder.log().string()));
  }
  // A log of one of the two ways would not show that there are two.
  std::string line = fmt::format("{} run {}", self, shell_word(arguments.operand));
  for (const auto& option : options_given(arguments)) line += " " + option;
  return line;
}

}  // namespace

int run(const Arguments& arguments, Console& console) {
  const auto scenario = scenario_of(arguments);
  const OutputFolder folder(scenario.output.directory);
  console.note(banner(scenario));
  const auto log = begun_log(scenario, arguments);
  sim::write_run_log(folder.log(), log);

  Job job(scenario, console);
  const auto oracle = seeded_oracle(scenario.world);
  auto outcome = job.run(*oracle);
  if (arguments.check_determinism) check_determinism(scenario, console, outcome);

  Report& report = outcome.report;
  report.replay = replay_line(arguments, folder, report);
  write_run_files(folder, scenario, report, log, job.world());
  console.print(report);
  return exit_code(report.verdict);
}

}  // namespace rehearse::cli
