// SPDX-License-Identifier: BSD-3-Clause
#include "cli/sweep/sweep_page.h"

#include <algorithm>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cli/sweep/bugs.h"
#include "record/output_file.h"
#include "report/page/report_page.h"

namespace rehearse::cli {
namespace {

using std::filesystem::path;

constexpr std::size_t kSeedsInStrip = 2000;   // the sweep's seeds, in their order
constexpr std::size_t kSeedsOfBugShown = 40;  // each with its link

// A link from the sweep's page to the page of a seed; empty if the seed has none.
std::string link_to(const Report& report, const path& folder) {
  const auto page = std::ranges::find_if(
      report.files, [](const std::string& file) { return path(file).filename() == "report.html"; });
  if (page == report.files.end()) return "";
  return path(*page).lexically_proximate(folder).generic_string();
}

sim::Json seeds_json(const SweepOutcome& outcome, const Bug& bug, const path& folder) {
  auto seeds = sim::Json::array();
  for (const auto seed : bug.seeds) {
    if (seeds.items().size() == kSeedsOfBugShown) break;
    seeds.push_back({{"seed", std::to_string(seed)}, {"page", link_to(*outcome.results.at(seed).failure, folder)}});
  }
  return seeds;
}

sim::Json bug_json(const SweepOutcome& outcome, const Bug& bug, const path& folder) {
  return {{"verdict", to_string(bug.first->verdict)}, {"headline", bug.first->headline}, {"culprit", bug.culprit},
          {"faults", fired_faults(*bug.first)},       {"replay", bug.first->replay},     {"count", bug.seeds.size()},
          {"seeds", seeds_json(outcome, bug, folder)}};
}

// For each seed the number of its bug, from 1; 0: the seed ended as expected.
sim::Json strip_json(const SweepOutcome& outcome, const std::vector<Bug>& bugs) {
  std::map<std::uint64_t, std::size_t> bug_of;
  for (std::size_t i = 0; i < bugs.size(); ++i) {
    for (const auto seed : bugs[i].seeds) bug_of[seed] = i + 1;
  }
  auto strip = sim::Json::array();
  for (const auto& [seed, result] : outcome.results) {
    if (strip.items().size() == kSeedsInStrip) break;
    const auto bug = bug_of.find(seed);
    strip.push_back(sim::Json::array({std::to_string(seed), bug == bug_of.end() ? 0 : bug->second}));
  }
  return strip;
}

void write_sweep_page(std::ostream& out, const SweepOutcome& outcome, const path& folder) {
  const auto bugs = bugs_of(outcome.results);
  auto bugs_json = sim::Json::array();
  std::size_t failed = 0;
  for (const auto& bug : bugs) {
    bugs_json.push_back(bug_json(outcome, bug, folder));
    failed += bug.seeds.size();
  }
  const auto ran = outcome.results.size();
  sim::Json sweep{{"program", outcome.program},
                  {"expect", to_string(outcome.expect)},
                  {"asked", to_string(outcome.asked)},
                  {"ran", ran},
                  {"failed", failed},
                  {"interrupted", outcome.interrupted},
                  {"bugs", std::move(bugs_json)},
                  {"seeds", strip_json(outcome, bugs)}};
  const sim::PageHead head{.title = fmt::format("{} of {} seeds failed: {}", failed, ran, outcome.program),
                           .word = outcome.interrupted ? std::string(to_string(Verdict::interrupted)) : "FAILED",
                           .headline = fmt::format("{} of {} seeds failed, by {} bug{}", failed, ran, bugs.size(),
                                                   bugs.size() == 1 ? "" : "s"),
                           .plain = to_text(outcome, false)};
  sim::write_page(out, head, {{"kind", "sweep"}, {"sweep", std::move(sweep)}});
}

}  // namespace

path sweep_page(const path& folder) { return folder / "sweep.html"; }

bool leave_sweep_page(const path& folder, const SweepOutcome& outcome, Console& console) {
  const auto page = sweep_page(folder);
  const bool failed =
      std::ranges::any_of(outcome.results, [](const auto& result) { return result.second.failure != nullptr; });
  std::error_code ignored;
  std::filesystem::remove(page, ignored);
  if (!failed) return true;
  return Console::leave([&] {
    sim::write_file(page, [&](std::ostream& out) { write_sweep_page(out, outcome, folder); });
    console.note(fmt::format("page: {}\n", page.string()));
  });
}

}  // namespace rehearse::cli
