// SPDX-License-Identifier: BSD-3-Clause
#include "run_files.h"

#include <ostream>

#include <fmt/format.h>
#include <fmt/ranges.h>
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

std::string leave_out_large_traces(sim::Scenario& scenario, std::uint64_t operations) {
  constexpr std::uint64_t kOperationsMost = 50'000;
  if (operations <= kOperationsMost) return "";
  auto& output = scenario.output;
  std::vector<std::string> files, keys;
  const auto leave_out = [&](bool& wanted, bool asked_for, const char* key) {
    if (!wanted || asked_for) return;
    wanted = false;
    files.push_back(fmt::format("{}.json", key));
    keys.push_back(fmt::format("{} = true", key));
  };
  leave_out(output.trace, output.trace_is_asked_for, "trace");
  leave_out(output.flight_recorder, output.flight_recorder_is_asked_for, "flight_recorder");
  if (files.empty()) return "";
  return fmt::format("{} left out, of a run of more than {} operations; {} under [output] would have written {}",
                     fmt::join(files, " and "), kOperationsMost, fmt::join(keys, " and "),
                     files.size() == 1 ? "it" : "them");
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
