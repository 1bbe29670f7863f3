// SPDX-License-Identifier: BSD-3-Clause
#include "run_files.h"

#include <ostream>

#include <fmt/format.h>
#include <rehearse/sim/chrome_trace.h>
#include <rehearse/sim/flight_recorder.h>
#include <rehearse/sim/report_writers.h>

#include "job.h"

namespace rehearse::cli {

sim::RunLog begun_log(const sim::Scenario& scenario, const Arguments& arguments) {
  sim::RunLog log;
  log.program = scenario.program;
  log.seed = scenario.world.seed;
  log.build = sim::executable_build_id();
  log.scenario_path = arguments.operand;
  log.scenario_text = sim::to_toml(scenario);
  log.options = options_given(arguments);
  return log;
}

std::vector<std::string> files_of(const OutputFolder& folder, const sim::Scenario& scenario) {
  const auto& output = scenario.output;
  std::vector<std::string> files = {folder.log().string()};
  if (output.report) files.push_back(folder.report().string());
  if (output.json) files.push_back(folder.json().string());
  if (output.trace) files.push_back(folder.trace().string());
  if (output.flight_recorder) files.push_back(folder.flight_recorder().string());
  return files;
}

void write_report_files(const OutputFolder& folder, const sim::Scenario& scenario, const Report& report) {
  const auto& output = scenario.output;
  if (output.report) write_file(folder.report(), [&](std::ostream& out) { out << sim::to_text(report); });
  if (output.json) write_file(folder.json(), [&](std::ostream& out) { out << sim::to_json(report); });
}

void write_run_files(const OutputFolder& folder, const sim::Scenario& scenario, const Report& report, sim::RunLog log,
                     const World& world) {
  write_report_files(folder, scenario, report);
  if (scenario.output.trace) {
    write_file(folder.trace(), [&](std::ostream& out) { sim::write_chrome_trace(out, world.events(), report); });
  }
  if (scenario.output.flight_recorder) {
    write_file(folder.flight_recorder(),
               [&](std::ostream& out) { sim::write_flight_recorder(out, world.events(), report.ranks); });
  }
  const auto& decisions = world.decisions().decisions();
  log.finished = {report, {decisions.begin(), decisions.end()}};
  sim::write_run_log(folder.log(), log);
}

}  // namespace rehearse::cli
