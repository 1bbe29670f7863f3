// SPDX-License-Identifier: BSD-3-Clause
// Contract: a real job that hung leaves only the flight recorder's dumps. If the verdict on a program of the corpus is
// about its calls, `explain` finds in the dumps the ranks that the run itself names, or some of them, or none. For
// every verdict, a table in docs/EXPLAIN.md counts how often `explain` and PyTorch's analyzer name these ranks, some of
// them, other ranks, or none. tests/data/flight_recorder/fr_trace.tsv has the analyzer's answers. If
// REHEARSE_UPDATE_GOLDEN=1 is set, the test writes the table. REHEARSE_CORPUS_DUMPS=folder keeps the dumps, for the
// analyzer.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/sim/report_writers.h>
#include <rehearse_internal/sim/flight_recorder.h>
#include "dumps/explain_dumps.h"
#include "dumps/read_dump.h"
#include "entry.h"
#include "json_schema.h"
#include "report/writers/culprits.h"

namespace corpus {
namespace {

using rehearse::Report;

constexpr int kSeedsTried = 50;  // for races: tries seeds until one fails
const std::string kExplainPage = REHEARSE_ROOT "/docs/EXPLAIN.md";

struct Answers {
  std::string report;
  Report run, dumps;
  std::vector<int> run_names;
};

std::string recording_of(const rehearse::World& world, const Report& report) {
  std::ostringstream out;
  rehearse::sim::write_flight_recorder(out, world.events(), report);
  return out.str();
}

Report explained(const std::string& recording) {
  rehearse::sim::Stacks stacks;
  const auto json = rehearse::sim::parse_json(recording);
  const auto dumps = rehearse::sim::read_dumps_of_all_ranks(rehearse::sim::Field(json), "flight_recorder.json", stacks);
  return rehearse::sim::explain_dumps(dumps, stacks);
}

void leave(const std::string& report, const std::string& recording) {
  const char* const folder = std::getenv("REHEARSE_CORPUS_DUMPS");
  if (folder == nullptr) return;
  std::filesystem::create_directories(folder);
  std::ofstream(std::filesystem::path(folder) / (report + ".json"), std::ios::binary) << recording;
}

// Finds the first schedule on which the program goes wrong.
std::optional<Answers> answers_to(const Entry& entry) {
  for (int seed = 1; seed <= (entry.on_every_schedule ? 1 : kSeedsTried); ++seed) {
    auto options = entry.options;
    options.seed = static_cast<std::uint64_t>(seed);
    options.keep_all_events = true;
    rehearse::World world(options);
    auto run = world.run([&entry](RankContext& ctx) { entry.program(ctx, false); });
    if (run.verdict == Verdict::ok) continue;
    const auto recording = recording_of(world, run);
    leave(std::string(entry.report), recording);
    auto named = rehearse::sim::culprits_of(run);
    return Answers{std::string(entry.report), std::move(run), explained(recording), std::move(named)};
  }
  return std::nullopt;
}

const std::vector<Answers>& all_answers() {
  static const auto answers = [] {
    std::vector<Answers> all;
    for (const auto& entry : all_entries()) {
      if (!entry.is_wrong()) continue;
      if (auto each = answers_to(entry)) all.push_back(std::move(*each));
    }
    return all;
  }();
  return answers;
}

bool is_of_calls(Verdict verdict) {
  return verdict == Verdict::mismatch || verdict == Verdict::deadlock || verdict == Verdict::timeout ||
         verdict == Verdict::livelock;
}

// Returns whether `all` contains `some`; both lists ascend. Locks and new_group() leave no entry in a dump, so dumps
// may name only some of the ranks that the run names.
bool are_among(const std::vector<int>& some, const std::vector<int>& all) {
  return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

std::vector<int> ranks_in(const std::string& numbers) {
  std::vector<int> ranks;
  std::istringstream in(numbers);
  for (std::string rank; std::getline(in, rank, ',');) ranks.push_back(std::stoi(rank));
  return ranks;
}

// The ranks that PyTorch's analyzer names, by report: "B010 <tab> 0,3".
std::map<std::string, std::vector<int>> names_by_fr_trace() {
  std::map<std::string, std::vector<int>> names;
  std::ifstream in(REHEARSE_ROOT "/tests/data/flight_recorder/fr_trace.tsv");
  for (std::string line; std::getline(in, line);) {
    const auto tab = line.find('\t');
    if (tab == line.npos || line.starts_with('#')) continue;
    names[line.substr(0, tab)] = ranks_in(line.substr(tab + 1, line.find('\t', tab + 1) - tab - 1));
  }
  return names;
}

std::string numbers(const std::vector<int>& ranks) { return fmt::format("{}", fmt::join(ranks, ",")); }

// Counts how often the named ranks are those that the run names, only some of those, other ranks, or none.
struct Score {
  int same = 0, some = 0, others = 0, nobody = 0;

  void add(const std::vector<int>& named, const std::vector<int>& right) {
    ++(named.empty() ? nobody : named == right ? same : are_among(named, right) ? some : others);
  }
  std::string text() const { return fmt::format("{} | {} | {} | {}", same, some, others, nobody); }
};

struct Row {
  int programs = 0;
  Score by_dumps, by_fr_trace;
};

std::string table() {
  const auto by_fr_trace = names_by_fr_trace();
  std::map<std::string, Row> rows;
  for (const auto& each : all_answers()) {
    if (each.run_names.empty()) continue;
    auto& row = rows[std::string(to_string(each.run.verdict))];
    ++row.programs;
    row.by_dumps.add(each.dumps.dumps->culprits, each.run_names);
    row.by_fr_trace.add(by_fr_trace.contains(each.report) ? by_fr_trace.at(each.report) : std::vector<int>(),
                        each.run_names);
  }
  std::string text =
      "| the run ended as | programs | `rehearse explain`: same | some | others | nobody | `fr_trace`: same | some | "
      "others "
      "| nobody |\n|---|---|---|---|---|---|---|---|---|---|\n";
  for (const auto& [verdict, row] : rows)
    text += fmt::format("| {} | {} | {} | {} |\n", verdict, row.programs, row.by_dumps.text(), row.by_fr_trace.text());
  return text;
}

// If the run's verdict is about calls, the dumps must not name other ranks.
TEST(CorpusDumps, NameTheCulpritsOfTheRun_OrNone) {
  int told = 0;
  for (const auto& each : all_answers()) {
    const auto& named = each.dumps.dumps->culprits;
    if (!is_of_calls(each.run.verdict) || named.empty()) continue;
    ++told;
    EXPECT_TRUE(are_among(named, each.run_names)) << each.report << ": " << numbers(named) << "\n"
                                                  << each.run.headline << "\n"
                                                  << each.dumps.headline;
  }
  EXPECT_GT(told, 50);
}

// The schema describes every key of a report, and places are lines of files that a tool can open.
TEST(ReportsOfTheCorpus, All_FollowTheSchema) {
  std::ifstream in(REHEARSE_ROOT "/docs/report.schema.json");
  const rehearse::test::JsonSchema schema(nlohmann::json::parse(in));
  int places = 0;
  for (const auto& each : all_answers()) {
    for (const auto* const report : {&each.run, &each.dumps}) {
      const auto json = nlohmann::json::parse(rehearse::sim::to_json(*report));
      EXPECT_THAT(schema.errors_in(json), testing::IsEmpty()) << each.report;
      for (const auto& line : json.at("rank_lines")) {
        if (!line.contains("place") || report->dumps) continue;
        ++places;
        const auto file = line.at("place").at("file").get<std::string>();
        EXPECT_TRUE(std::filesystem::exists(std::filesystem::path(REHEARSE_ROOT) / file)) << line;
      }
    }
  }
  EXPECT_GT(places, 50);
}

// If a program's answer were missing, the table would count the program as one for which the analyzer names nobody.
TEST(CorpusDumps, AnalyzersAnswers_AreThereForAll) {
  const auto by_fr_trace = names_by_fr_trace();
  for (const auto& each : all_answers())
    EXPECT_TRUE(by_fr_trace.contains(each.report)) << each.report << ": tests/data/make_fr_trace.py makes its line";
}

TEST(CorpusDumps, GroupsThatRanksMadeDifferently_AreAMismatch) {
  const auto& all = all_answers();
  const auto found = std::find_if(all.begin(), all.end(), [](const Answers& each) { return each.report == "B084"; });
  ASSERT_NE(found, all.end());
  EXPECT_EQ(found->dumps.verdict, Verdict::mismatch);
  EXPECT_EQ(found->dumps.headline, "new_group() of group \"group1\": ranks 0,3 passed {0, 3}, ranks 1-2 passed {1, 2}");
}

// The page's table, from its first line to the empty line after it.
TEST(CorpusDumps, TableOfThePage_IsTheirs) {
  std::ifstream in(kExplainPage, std::ios::binary);
  std::ostringstream shown;
  shown << in.rdbuf();
  auto page = shown.str();
  const auto made = table();
  const auto begin = page.find("| the run ended as ");
  ASSERT_NE(begin, page.npos) << kExplainPage;
  const auto size = page.find("\n\n", begin) + 1 - begin;
  if (std::getenv("REHEARSE_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(kExplainPage, std::ios::binary) << page.replace(begin, size, made);
    return;
  }
  EXPECT_EQ(page.substr(begin, size), made) << "REHEARSE_UPDATE_GOLDEN=1 writes " << kExplainPage;
}

}  // namespace
}  // namespace corpus
