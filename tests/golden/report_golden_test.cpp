// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <set>
#include <sstream>

#include <rehearse/sim/report_writers.h>

#include "golden_file.h"
#include "report_samples.h"

namespace rehearse::golden {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// Users read this report, so every change of it must be intended, and visible in review.
TEST(ReportText, EveryVerdict_AsInItsFile) {
  for (const Sample& sample : samples()) {
    expect_golden(sim::to_text(sample.report), std::string("report_") + sample.name + ".txt");
  }
}

TEST(ReportText, ManyRanksAndEvents_PartsAreCutWithACount) {
  expect_golden(sim::to_text(large_report()), "report_large.txt");
}

TEST(ReportJson, EveryVerdict_AsInItsFile) {
  for (const Sample& sample : samples()) {
    expect_golden(sim::to_json(sample.report), std::string("report_") + sample.name + ".json");
  }
}

TEST(ReportSamples, All_CoverEveryVerdict) {
  std::set<Verdict> covered;
  for (const Sample& sample : samples()) covered.insert(sample.report.verdict);
  const auto all = all_verdicts();
  EXPECT_EQ(covered, std::set<Verdict>(all.begin(), all.end()));
}

TEST(ReportText, EveryVerdict_StartsWithItAndEndsWithTheReplay) {
  for (const Sample& sample : samples()) {
    const auto lines = lines_of(sim::to_text(sample.report));
    ASSERT_FALSE(lines.empty());
    EXPECT_EQ(lines.front().rfind(std::string(to_string(sample.report.verdict)) + ": ", 0), 0u) << lines.front();
    EXPECT_EQ(lines.back(), "replay: ./lm_ddp replay rehearse-out/lm_ddp/run.rlog");
    EXPECT_LE(lines.size(), 25u) << sample.name;
    for (const auto& line : lines) EXPECT_LE(line.size(), 120u) << line;
  }
}

TEST(ReportText, Color_OnlyTheVerdict) {
  const Report report = deadlock_report();
  const std::string plain = sim::to_text(report);
  const std::string colored = sim::to_text(report, {.color = true});
  EXPECT_EQ(colored, "\x1b[1;31mDEADLOCK\x1b[0m" + plain.substr(std::string("DEADLOCK").size()));
  EXPECT_EQ(sim::to_text(ok_report(), {.color = true}).substr(0, 16), "\x1b[1;32mOK\x1b[0m: 4");
}

TEST(ReportText, NarrowOutput_WrapsAtSpacesAndKeepsTheReplayLineWhole) {
  const auto lines = lines_of(sim::to_text(deadlock_report(), {.width = 60}));
  for (const auto& line : lines) {
    if (line.rfind("replay: ", 0) == 0 || line.find(' ', 2) == std::string::npos) continue;
    EXPECT_LE(line.size(), 60u) << line;
  }
  EXPECT_EQ(lines.back(), "replay: ./lm_ddp replay rehearse-out/lm_ddp/run.rlog");
}

TEST(ReportText, RemarksCountsAndHint_HaveTheirPlaces) {
  Report report = deadlock_report();
  report.call_counts = {{"world", "ddp.cpp:271 in step", {{5, {0, 2, 3}}, {4, {1}}}},
                        {"world", "ddp.cpp:280 in step", {{2, {0, 1}}, {1, {2}}, {0, {3}}}}};
  report.remarks = {"nobody waited for barrier #3 on group \"world\" of rank 0 at train.cpp:9 in step"};
  report.hint = "compile with -g1 to see lines";
  const auto lines = lines_of(sim::to_text(report));
  const auto has = [&](const std::string& line) { return std::find(lines.begin(), lines.end(), line) != lines.end(); };
  EXPECT_TRUE(has("lines that some ranks called more often than others:"));
  EXPECT_TRUE(has("  ddp.cpp:271 in step, group \"world\":  5 times on ranks 0,2-3,  4 times on rank 1"));
  EXPECT_TRUE(has("  ddp.cpp:280 in step, group \"world\":  2 times on ranks 0-1,  once on rank 2,  never on rank 3"));
  EXPECT_TRUE(has("remark: nobody waited for barrier #3 on group \"world\" of rank 0 at train.cpp:9 in step"));
  EXPECT_EQ(lines.back(), "hint: compile with -g1 to see lines");
  const auto back = sim::report_from_json(sim::to_json(report));
  EXPECT_EQ(sim::to_text(back), sim::to_text(report));
}

TEST(ReportText, CountsOfManySides_AreCutWithTheRanksLeftOut) {
  Report report = deadlock_report();
  CallCounts counts{"world", "ddp.cpp:271 in step", {}};
  for (int rank = 0; rank < 6; ++rank) counts.sides.push_back({static_cast<std::uint64_t>(rank), {rank}});
  counts.sides.push_back({6, {6, 7}});
  report.call_counts = {counts};
  EXPECT_NE(sim::to_text(report, {.width = 1000}).find("5 times on rank 5,  another number of times on 2 more ranks\n"),
            std::string::npos);
}

// Logs and reports of versions without these fields can still be read.
TEST(ReportJson, WithoutRemarksCountsAndHint_IsReadAllTheSame) {
  std::string json = sim::to_json(ok_report());
  for (const std::string key : {"  \"call_counts\": [],\n", "  \"remarks\": [],\n", ",\n  \"hint\": \"\""}) {
    const auto at = json.find(key);
    ASSERT_NE(at, std::string::npos) << key;
    json.erase(at, key.size());
  }
  EXPECT_EQ(sim::to_text(sim::report_from_json(json)), sim::to_text(ok_report()));
}

TEST(ReportJson, EverySample_ReadsBackTheSame) {
  auto all = samples();
  all.push_back({"large", large_report()});
  for (const Sample& sample : all) {
    const std::string json = sim::to_json(sample.report);
    const Report back = sim::report_from_json(json);
    EXPECT_EQ(sim::to_json(back), json) << sample.name;
    EXPECT_EQ(sim::to_text(back), sim::to_text(sample.report)) << sample.name;
    EXPECT_EQ(back.seed, sample.report.seed);
    EXPECT_EQ(back.checks, sample.report.checks);
  }
}

TEST(ReportJson, BytesThatAreNotUtf8_AreReplacedNotRefused) {
  Report report = ok_report();
  report.headline = "bad \xff byte";
  EXPECT_EQ(sim::report_from_json(sim::to_json(report)).headline, "bad \xEF\xBF\xBD byte");
}

std::string error_of(const std::string& json) {
  try {
    sim::report_from_json(json);
  } catch (const sim::ReportFormatError& error) {
    return error.what();
  }
  return "no error";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

TEST(ReportJson, Damaged_ErrorNamesThePart) {
  const std::string json = sim::to_json(mismatch_report());
  EXPECT_EQ(error_of("{\"a\": }"), "is no report of rehearse: not JSON, see byte 7");
  EXPECT_EQ(error_of("[]"), "is no report of rehearse: the whole is not an object");
  EXPECT_EQ(error_of("{}"), "is no report of rehearse: rehearse_report is missing");
  EXPECT_EQ(error_of(replaced(json, "\"rehearse_report\": 2", "\"rehearse_report\": 1")),
            "is a report of format 1; this rehearse reads format 2");
  EXPECT_EQ(error_of(replaced(json, "\"MISMATCH\"", "\"WEATHER\"")),
            "is no report of rehearse: verdict is \"WEATHER\", which is no verdict");
  EXPECT_EQ(error_of(replaced(sim::to_json(deadlock_report()), "\"blocked\"", "\"asleep\"")),
            "is no report of rehearse: rank_lines[0].state is \"asleep\", which is no state of a rank");
  EXPECT_EQ(error_of(replaced(json, "\"ranks\": 4", "\"ranks\": \"four\"")),
            "is no report of rehearse: ranks is \"four\", which is of the wrong type");
  EXPECT_EQ(error_of(replaced(json, "\"seed\": \"0x7\"", "\"seed\": \"7\"")),
            "is no report of rehearse: seed is \"7\" and not a number as in \"0x7\"");
  EXPECT_EQ(error_of(replaced(json, "\"name\": \"reduce_op\"", "\"name\": 3")),
            "is no report of rehearse: differences[0].fields[0].name is 3, which is of the wrong type");
  EXPECT_EQ(error_of(replaced(json, "\"fingerprint\"", "\"finger\"")),
            "is no report of rehearse: differences[0].first.fingerprint is missing");
  EXPECT_EQ(error_of(replaced(sim::to_json(deadlock_report()), "\"sides\"", "\"places\"")),
            "is no report of rehearse: call_places[0].sides is missing");
  Report fired = ok_report();
  fired.faults = {{"crash rank=3", false, 7, {}, ""}};
  EXPECT_EQ(error_of(sim::to_json(fired)),
            "is no report of rehearse: faults[0].fired is empty, and the fault fired 7 times");
}

}  // namespace
}  // namespace rehearse::golden
