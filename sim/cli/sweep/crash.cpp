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

std::pair<Report, std::string> crash_report(const SweepSetup& setup, std::uint64_t seed, int status,
                                            int printed) {
  auto scenario = setup.scenario;
  scenario.world.seed = seed;
  const auto said = last_line(contents(printed));
  Report report;
  report.verdict = Verdict::crashed;
  report.headline = fmt::format("the process ended {} in the middle of the run{}{}", manner(status),
                                said.empty() ? "" : "; its last words: ", said);
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
    keep_printed(printed, folder, report);
    report.files.push_back(out.log().string());
    sim::write_run_log(out.log(), begun_log(scenario, setup.arguments));
    if (scenario.output.report) {
      report.files.push_back(out.report().string());
      write_file(out.report(), [&](std::ostream& file) { file << sim::to_text(report); });
    }
    return {std::move(report), ""};
  } catch (const std::exception& error) {
    report.files.clear();
    return {std::move(report), error.what()};
  }
}

}  // namespace rehearse::cli
