// SPDX-License-Identifier: BSD-3-Clause
#include "crash.h"

#include <cstring>
#include <exception>
#include <ostream>

#include <fmt/format.h>
#include <rehearse/sim/report_writers.h>
#include <sys/wait.h>

#include "job.h"
#include "pipe.h"
#include "run_files.h"

namespace rehearse::cli {
namespace {

std::string manner(int status) {
  if (!WIFSIGNALED(status)) return fmt::format("with exit code {}", WEXITSTATUS(status));
  const int signal = WTERMSIG(status);
  return fmt::format("by SIG{} ({})", sigabbrev_np(signal), strsignal(signal));
}

// Usually says why: an assertion, a sanitizer's verdict, a stack overflow.
std::string last_line(const std::string& text) {
  const auto end = text.find_last_not_of(" \n\t\r");
  if (end == std::string::npos) return "";
  const auto start = text.rfind('\n', end);
  return text.substr(start + 1, end - start);
}

}  // namespace

std::string past_its_time(const SweepSetup& setup) {
  return fmt::format("did not end within {} s (--time-limit)", setup.arguments.time_limit->count());
}

std::pair<Report, std::string> crash_report(const SweepSetup& setup, std::uint64_t seed,
                                            std::optional<int> status, int printed) {
  auto scenario = setup.scenario;
  scenario.world.seed = seed;
  scenario.output.trace = false;
  const auto said = last_line(contents(printed));
  Report report;
  report.verdict = status ? Verdict::crashed : Verdict::interrupted;
  report.headline = status ? fmt::format("the process ended {} in the middle of the run", manner(*status))
                           : past_its_time(setup) + " and had to be killed";
  if (!said.empty()) report.headline += "; its last words: " + said;
  report.program = scenario.program;
  report.ranks = scenario.world.ranks;
  report.seed = seed;
  report.schedule = scenario.world.schedule == Schedule::random ? "random" : "round_robin";
  report.version = REHEARSE_VERSION;
  try {
    const auto folder = seed_folder(scenario, seed);
    const OutputFolder out(folder);
    report.replay =
        fmt::format("{} replay {}", shell_word(setup.arguments.self), shell_word(out.log().string()));
    report.files = files_of(out, scenario);
    keep_printed(printed, folder, report);
    sim::write_run_log(out.log(), begun_log(scenario, setup.arguments));
    if (scenario.output.report)
      write_file(out.report(), [&](std::ostream& file) { file << sim::to_text(report); });
    if (scenario.output.json)
      write_file(out.json(), [&](std::ostream& file) { file << sim::to_json(report); });
    return {std::move(report), ""};
  } catch (const std::exception& error) {
    report.files.clear();
    return {std::move(report), error.what()};
  }
}

}  // namespace rehearse::cli
