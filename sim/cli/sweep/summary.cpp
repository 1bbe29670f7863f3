// SPDX-License-Identifier: BSD-3-Clause
#include "cli/sweep/summary.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rehearse/sim/report_writers.h>

#include "cli/sweep/bugs.h"
#include "cli/terminal/exit_codes.h"
#include "report/writers/json.h"
#include "report/writers/text_lines.h"

namespace rehearse::cli {
namespace {

constexpr std::size_t kSeedsShown = 8;

std::string seeds_text(const std::vector<std::uint64_t>& seeds) {
  const auto shown = std::min(seeds.size(), kSeedsShown);
  const std::vector<std::uint64_t> first(seeds.begin(), seeds.begin() + static_cast<std::ptrdiff_t>(shown));
  const auto more = seeds.size() - shown;
  return fmt::format("seed{} {}{}", seeds.size() == 1 ? "" : "s", fmt::join(first, ", "),
                     more == 0 ? "" : fmt::format(" and {} more", more));
}

std::string count_text(std::size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// A crashed or interrupted run has no Report::identity, or only that of its beginning.
bool came_to_its_end(const SeedResult& result) {
  if (!result.failure) return true;
  const auto verdict = result.failure->verdict;
  return verdict != Verdict::crashed && verdict != Verdict::interrupted;
}

// Seeds with equal runs count once.
std::size_t different_runs(const SeedResults& results) {
  std::set<std::uint64_t> identities;
  for (const auto& [seed, result] : results) {
    if (came_to_its_end(result)) identities.insert(result.identity);
  }
  return identities.size();
}

std::string colored(std::string_view word, bool good, bool color) {
  return color ? fmt::format("\x1b[1;{}m{}\x1b[0m", good ? 32 : 31, word) : std::string(word);
}

std::string bug_text(const Bug& bug, std::size_t number) {
  auto text = fmt::format("{}. {}, {}: {}\n", number, to_string(bug.first->verdict), seeds_text(bug.seeds),
                          sim::visible(bug.first->headline));
  for (const auto& part : bug.culprit) text += fmt::format("     {}\n", sim::visible(part));
  for (const auto& fault : fired_faults(*bug.first)) text += fmt::format("     fault: {}\n", sim::visible(fault));
  if (!bug.first->files.empty()) text += fmt::format("     files: {}\n", fmt::join(bug.first->files, ", "));
  return text;
}

// Two seeds that write the same file are not independent runs: the later run finds what the earlier one left.
std::map<std::string, std::vector<std::uint64_t>> shared_files(const SeedResults& results) {
  std::map<std::string, std::vector<std::uint64_t>> files;
  for (const auto& [seed, result] : results) {
    for (const auto& file : result.files) files[file].push_back(seed);
  }
  std::erase_if(files, [](const auto& file) { return file.second.size() < 2; });
  return files;
}

std::string shared_files_text(const SeedResults& results) {
  constexpr std::size_t kFilesShown = 4;
  const auto files = shared_files(results);
  std::string text;
  std::size_t shown = 0;
  for (const auto& [file, seeds] : files) {
    if (shown++ == kFilesShown) break;
    text += fmt::format("remark: {} wrote to the same file, {}; scratch_folder() and shared_folder() are the seed's\n",
                        seeds_text(seeds), sim::visible(file));
  }
  if (files.size() > kFilesShown) text += fmt::format("remark: and to {} more\n", files.size() - kFilesShown);
  return text;
}

// Remarks about all seeds, and remarks of the runs that ended as expected.
std::string remarks_text(const SeedResults& results) {
  constexpr std::size_t kRemarksShown = 8;
  auto text = shared_files_text(results);
  const auto remarks = remarks_of(results);
  for (std::size_t i = 0; i < remarks.size() && i < kRemarksShown; ++i)
    text += fmt::format("remark of {}: {}\n", seeds_text(remarks[i].seeds), sim::visible(remarks[i].text));
  if (remarks.size() > kRemarksShown) text += fmt::format("and {} more remarks\n", remarks.size() - kRemarksShown);
  return text;
}

struct StrategyCount {
  std::size_t runs = 0, failed = 0;
};

std::map<std::string, StrategyCount> strategies_of(const SeedResults& results) {
  std::map<std::string, StrategyCount> strategies;
  for (const auto& [seed, result] : results) {
    auto& count = strategies[result.strategy];
    ++count.runs;
    count.failed += result.failure ? 1 : 0;
  }
  return strategies;
}

// Which strategies found how much. Empty if all seeds had one.
std::string strategies_text(const SeedResults& results) {
  const auto strategies = strategies_of(results);
  if (strategies.size() < 2) return "";
  std::vector<std::string> texts;
  for (const auto& [strategy, count] : strategies)
    texts.push_back(fmt::format("{} {} of {}", strategy, count.failed, count.runs));
  return fmt::format("found by: {}\n", fmt::join(texts, ", "));
}

std::string stopped_text(const SweepOutcome& outcome) {
  if (!outcome.stopped || outcome.interrupted) return "";
  const auto left = outcome.asked.count() - outcome.results.size();
  return left == 0 ? "" : fmt::format("; {} not run (--keep-going runs them)", count_text(left, "seed"));
}

std::string found_text(const SweepOutcome& outcome, bool color) {
  const auto bugs = bugs_of(outcome.results);
  const auto ran = outcome.results.size();
  const auto runs = different_runs(outcome.results);
  const auto runs_text = runs == 0 ? "" : fmt::format(" ({})", count_text(runs, "different run"));
  if (bugs.empty()) {
    const auto verdict = outcome.interrupted ? "" : colored("OK", true, color) + ": ";
    const auto ends = outcome.expect == Verdict::ok
                          ? "found nothing"
                          : fmt::format("ended as {}, as expected", to_string(outcome.expect));
    return fmt::format("{}{} of {} {}{}\n", verdict, count_text(ran, "seed"), outcome.program, ends, runs_text) +
           remarks_text(outcome.results);
  }
  std::size_t failed = 0;
  for (const auto& bug : bugs) failed += bug.seeds.size();
  auto text = fmt::format("{}: {} of {}{}, {}{}\n", colored("FAILED", false, color), failed, count_text(ran, "seed"),
                          runs_text, count_text(bugs.size(), "bug"), stopped_text(outcome)) +
              remarks_text(outcome.results);
  if (failed == 1) return text + sim::to_text(*bugs.front().first, {.color = color});
  for (std::size_t i = 0; i < bugs.size(); ++i) text += bug_text(bugs[i], i + 1);
  return text + strategies_text(outcome.results) + fmt::format("replay: {}\n", bugs.front().first->replay);
}

}  // namespace

std::string to_text(const SweepOutcome& outcome, bool color) {
  if (!outcome.interrupted) return found_text(outcome, color);
  const auto left = outcome.asked.count() - outcome.results.size();
  const auto text =
      fmt::format("{}: {} not run\n", colored(to_string(Verdict::interrupted), false, color), count_text(left, "seed"));
  return outcome.results.empty() ? text : text + found_text(outcome, color);
}

std::string to_json(const SweepOutcome& outcome) {
  sim::Json json = {{"program", outcome.program},    {"seeds", to_string(outcome.asked)},
                    {"ran", outcome.results.size()}, {"different_runs", different_runs(outcome.results)},
                    {"stopped", outcome.stopped},    {"interrupted", outcome.interrupted}};
  auto files = sim::Json::array();
  for (const auto& [file, seeds] : shared_files(outcome.results)) files.push_back({{"file", file}, {"seeds", seeds}});
  if (!files.items().empty()) json["shared_files"] = std::move(files);
  auto& remarks = json["remarks"] = sim::Json::array();
  for (const auto& remark : remarks_of(outcome.results))
    remarks.push_back({{"text", remark.text}, {"seeds", remark.seeds}});
  auto& strategies = json["strategies"] = sim::Json::array();
  for (const auto& [strategy, count] : strategies_of(outcome.results))
    strategies.push_back({{"strategy", strategy}, {"runs", count.runs}, {"failed", count.failed}});
  auto& bugs = json["bugs"] = sim::Json::array();
  for (const auto& bug : bugs_of(outcome.results)) {
    bugs.push_back({{"verdict", to_string(bug.first->verdict)},
                    {"headline", bug.first->headline},
                    {"culprit", bug.culprit},
                    {"count", bug.seeds.size()},
                    {"seeds", bug.seeds},
                    {"faults", fired_faults(*bug.first)},
                    {"replay", bug.first->replay},
                    {"first_report", sim::parse_json(sim::to_json(*bug.first))}});
  }
  return sim::json_text(std::move(json), 2) + "\n";
}

int exit_code(const SweepOutcome& outcome) {
  if (outcome.interrupted) return rehearse::exit_code(Verdict::interrupted);
  for (const auto& [seed, result] : outcome.results) {
    if (!result.failure) continue;
    const auto verdict = result.failure->verdict;
    const bool is_bad = verdict != Verdict::ok && verdict != outcome.expect;  // otherwise only the expectation failed
    return is_bad ? rehearse::exit_code(verdict) : kExitDisagree;
  }
  return 0;
}

}  // namespace rehearse::cli
