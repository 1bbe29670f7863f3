// SPDX-License-Identifier: BSD-3-Clause
#include <optional>

#include <fmt/format.h>
#include <rehearse/sim/oracles.h>
#include <rehearse/sim/run_log.h>

#include "commands.h"
#include "job.h"

namespace rehearse::cli {
namespace {

// The report of a replay that went another way than the log.
Report other_way(const sim::RunLog& log, const std::string& what) {
  Report report;
  report.verdict = Verdict::nondeterminism;
  report.headline = "the replay took another way than the log: " + what;
  const Report& recorded = log.finished->report;
  report.program = log.program;
  report.ranks = recorded.ranks;
  report.seed = log.seed;
  report.schedule = recorded.schedule;
  report.version = recorded.version;
  return report;
}

Report replayed(const sim::RunLog& log, const sim::Scenario& scenario, Console& console) {
  const auto& finished = *log.finished;
  sim::ReplayOracle oracle(finished.decisions, sim::PastEnd::stop);
  Job job(scenario, console);
  try {
    auto outcome = job.run(oracle);
    oracle.require_used_up();
    if (outcome.report.identity == finished.report.identity) {
      console.note(fmt::format("the same run as in the log, identity={:016x}\n", outcome.report.identity));
      return outcome.report;
    }
    return other_way(
        log, fmt::format("the same {} decisions, but other steps, operations or times in between "
                         "(identity {:016x}, the log's is {:016x})",
                         finished.decisions.size(), outcome.report.identity, finished.report.identity));
  } catch (const sim::ReplayError& error) {
    return other_way(log, error.what());
  }
}

// The log was begun, but its run never ended: all there is to go by is the seed.
Report from_seed(const sim::Scenario& scenario, Console& console) {
  console.note("the run in the log did not end; this is its seed from the start\n");
  Job job(scenario, console);
  return job.run(*seeded_oracle(scenario.world)).report;
}

}  // namespace

int replay(const Arguments& arguments, Console& console) {
  const auto log = sim::read_run_log(arguments.operand);
  if (log.scenario_text.empty()) {
    throw UsageError(fmt::format("{}: belongs to the test {}; run that with REHEARSE_REPLAY={}",
                                 arguments.operand, log.program, shell_word(arguments.operand)));
  }
  auto scenario = sim::parse_scenario(log.scenario_text, arguments.operand);
  scenario.output.trace = false;
  console.note(banner(scenario));
  if (log.build != sim::executable_build_id()) {
    console.note("another build of the program made this log: it may not fit\n");
  }
  Report report = log.finished ? replayed(log, scenario, console) : from_seed(scenario, console);
  report.replay = fmt::format("{} replay {}", shell_word(arguments.self), shell_word(arguments.operand));
  console.print(report);
  return exit_code(report.verdict);
}

}  // namespace rehearse::cli
