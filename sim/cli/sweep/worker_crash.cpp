// SPDX-License-Identifier: BSD-3-Clause
#include "cli/sweep/worker_crash.h"

#include <exception>

#include <fmt/format.h>
#include <sys/wait.h>

#include "cli/death/death.h"
#include "cli/death/pipe.h"
#include "cli/job.h"

namespace rehearse::cli {
namespace {

std::string manner(int status) {
  if (!WIFSIGNALED(status)) return fmt::format("with exit code {}", WEXITSTATUS(status));
  return "by " + signal_text(WTERMSIG(status));
}

// The last line usually says why: an assertion, a sanitizer's verdict, a stack overflow.
std::string last_line(const std::string& text) {
  const auto end = text.find_last_not_of(" \n\t\r");
  if (end == std::string::npos) return "";
  const auto start = text.rfind('\n', end);
  return text.substr(start + 1, end - start);
}

std::string headline(const SweepSetup& setup, std::optional<int> status, const CrashRecord& crash, int printed) {
  if (!status) return killed_headline(setup.arguments, crash);
  const auto said = last_line(contents(printed));
  return crash_headline(crash, manner(*status)) + (said.empty() ? "" : "; its last words: " + said);
}

}  // namespace

std::pair<Report, std::string> crash_report(const SweepSetup& setup, std::uint64_t seed, std::optional<int> status,
                                            const CrashRecord& crash, int printed) {
  auto scenario = setup.scenario;
  scenario.world.seed = seed;
  scenario.output.leave_events_out();
  Report report = report_on_death(scenario, status ? Verdict::crashed : Verdict::interrupted,
                                  headline(setup, status, crash, printed), crash);
  try {
    const auto folder = seed_folder(scenario, seed);
    const OutputFolder out(folder);
    report.replay = replay_line(setup.arguments, seed, out.log());
    report.files = sim::files_of(folder, scenario.output);
    keep_printed(printed, folder, report);
    sim::write_run_log(out.log(), begun_log(scenario, setup.arguments));
    sim::write_report_files(folder, scenario.output, {report});
    return {std::move(report), ""};
  } catch (const std::exception& error) {
    report.files.clear();
    return {std::move(report), error.what()};
  }
}

}  // namespace rehearse::cli
