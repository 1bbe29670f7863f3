// SPDX-License-Identifier: BSD-3-Clause
#include "death.h"

#include <fmt/format.h>

namespace rehearse::cli {
namespace {

// Of a process that could note nothing, and that others than its parent look at.
constexpr const char* kFromOutside =
    "without a word, as SIGKILL ends one (the system sends it when memory is short, as do `kill -9` and job managers),";

std::string interrupt_headline(const LastWords& words) {
  const auto how = fmt::format("ended by a second {}", signal_text(words.signal));
  return words.rank < 0 ? how : fmt::format("rank {} computes and came to no switch: {}", words.rank, how);
}

}  // namespace

std::string crash_headline(const LastWords& words, const std::string& manner) {
  if (words.overflowed_stack_bytes != 0) {
    return fmt::format(
        "rank {} overflowed its stack of {} KiB, and ended the process by {}; raise `stack` under [world]", words.rank,
        words.overflowed_stack_bytes >> 10, signal_text(words.signal));
  }
  if (words.signal == 0) return fmt::format("the process ended {} in the middle of the run", manner);
  const auto by = signal_text(words.signal);
  return words.rank < 0 ? fmt::format("the process ended by {} outside of its ranks", by)
                        : fmt::format("rank {} ended the process by {}", words.rank, by);
}

Report report_on_death(const sim::Scenario& scenario, Verdict verdict, std::string headline, const LastWords& words) {
  Report report;
  report.verdict = verdict;
  report.headline = std::move(headline);
  report.program = scenario.program;
  report.ranks = scenario.world.ranks;
  report.seed = scenario.world.seed;
  report.schedule = schedule_text(scenario.world);
  report.version = REHEARSE_VERSION;
  if (words.rank < 0) return report;
  const bool crashed = verdict == Verdict::crashed;
  report.rank_lines.push_back(line_of(words, crashed ? "failed" : "stopped", crashed ? signal_text(words.signal) : ""));
  report.hint = site_of(words).how_to_see_lines();
  return report;
}

Report report_on_death(const sim::Scenario& scenario, const LastWords& words) {
  const bool interrupted = words.signal == SIGINT || words.signal == SIGTERM;
  return report_on_death(scenario, interrupted ? Verdict::interrupted : Verdict::crashed,
                         interrupted ? interrupt_headline(words) : crash_headline(words, kFromOutside), words);
}

}  // namespace rehearse::cli
