// SPDX-License-Identifier: BSD-3-Clause
#include "cli/death/death.h"

#include <fmt/format.h>

#include "record/begun_report.h"

namespace rehearse::cli {
namespace {

// For a process that could note nothing. The reader need not be its parent.
constexpr const char* kFromOutside =
    "without a word, as SIGKILL ends one (the system sends it when memory is short, as do `kill -9` and job managers),";

std::string interrupt_headline(const LastWords& words) {
  const auto how = fmt::format("ended by a second {}", signal_text(words.signal));
  if (words.rank < 0) return how;
  const std::string call = words.call.data();
  const auto doing = call.empty() ? "computes and came to no switch" : "is blocked in " + call;
  return fmt::format("rank {} {}: {}", words.rank, doing, how);
}

// The process ended without a signal: the rank never returned from its call, or ended the process itself.
Report report_on_early_end(const sim::Scenario& scenario, const LastWords& words) {
  Report report = sim::begun_report(scenario.world, scenario.program);
  report.verdict = words.verdict;
  report.headline = words.headline.data();
  const std::string call = words.call.data(), doing = words.doing.data();
  const bool blocked = words.state == RankOutcome::stopped && !call.empty();
  report.rank_lines.push_back(line_of(words, blocked ? RankOutcome::blocked : words.state,
                                      blocked ? fmt::format("{}, and {}", call, doing) : doing));
  report.hint = site_of(words).how_to_see_lines();
  return report;
}

}  // namespace

std::string past_its_time(const Arguments& arguments) {
  return fmt::format("did not end within {} s (--time-limit)", arguments.time_limit->count());
}

std::string killed_headline(const Arguments& arguments, const LastWords& words) {
  const auto headline = past_its_time(arguments) + " and had to be killed";
  if (words.rank < 0) return headline;
  const std::string call = words.call.data();
  return fmt::format("{}: rank {} {}", headline, words.rank, call.empty() ? "computes" : "is blocked in " + call);
}

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
  Report report = sim::begun_report(scenario.world, scenario.program);
  report.verdict = verdict;
  report.headline = std::move(headline);
  if (words.rank < 0) return report;
  const std::string call = words.call.data();
  if (verdict == Verdict::crashed) {
    report.rank_lines.push_back(line_of(words, RankOutcome::failed, signal_text(words.signal)));
  } else {
    report.rank_lines.push_back(line_of(words, call.empty() ? RankOutcome::stopped : RankOutcome::blocked, call));
  }
  report.hint = site_of(words).how_to_see_lines();
  return report;
}

Report report_on_death(const sim::Scenario& scenario, const LastWords& words) {
  if (words.headline.front() != '\0') return report_on_early_end(scenario, words);
  const bool interrupted = words.signal == SIGINT || words.signal == SIGTERM;
  return report_on_death(scenario, interrupted ? Verdict::interrupted : Verdict::crashed,
                         interrupted ? interrupt_headline(words) : crash_headline(words, kFromOutside), words);
}

}  // namespace rehearse::cli
