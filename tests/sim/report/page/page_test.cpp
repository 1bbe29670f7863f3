// SPDX-License-Identifier: BSD-3-Clause
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rehearse/sim/report_writers.h>
#include <rehearse_internal/job/compile_journal.h>

#include "golden/report_samples.h"
#include "report/page/compiled_functions.h"
#include "report/page/page_text.h"
#include "report/page/rank_rows.h"
#include "report/page/report_page.h"
#include "report/page/source_excerpts.h"
#include "report/page/timeline_json.h"
#include "report/writers/report_json.h"
#include "sim/report/page/page_worlds.h"

// Contract: a page is one file with its run's report and timeline as data. Nothing in them can break out of the data.

namespace rehearse::sim {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string page_of(const Report& report) {
  std::ostringstream out;
  write_report_page(out, report, page_run({.report = report}));
  return out.str();
}

TEST(ByteText, Numbers_TakeSevenBitsOfEachByte) {
  ByteText bytes;
  for (const std::uint64_t number : {0u, 1u, 127u, 128u, 300u}) bytes.add(number);
  EXPECT_EQ(bytes.base64(), "AAF/gAGsAg==");  // 00 01 7f 80 01 ac 02
}

TEST(ByteText, SignedNumbersAndTimes_AreSmallNearZero) {
  ByteText bytes;
  for (const std::int64_t number : {0, -1, 1, -2}) bytes.add_signed(number);
  bytes.add_time(Timeline::kNever, 5);
  bytes.add_time(5, 5);
  bytes.add_time(4, 5);
  EXPECT_EQ(bytes.base64(), "AAECAwABAg==");
}

TEST(RankRuns, FirstAndLastOfEachRun) {
  EXPECT_EQ(json_text(rank_runs({0, 1, 2, 5, 7, 8})), "[0,2,5,5,7,8]");
  EXPECT_EQ(json_text(rank_runs({3, 1})), "[3,3,1,1]");
  EXPECT_EQ(json_text(rank_runs({})), "[]");
}

TEST(RankRows, RanksThatEndedAlike_ShareARow) {
  EXPECT_EQ(
      json_text(rank_rows(golden::deadlock_report().rank_lines).rows),
      R"([{"ranks":[0,1,3,7],"state":"blocked","times_ns":[1203000],"doing":"allreduce #7 on group \"world\"",)"
      R"("last":"allreduce #6 on group \"world\"","where":"train.cpp:44 in train_step","waits_for":[2,2]},)"
      R"({"ranks":[2,2],"state":"returned","times_ns":[903000],"last":"allreduce #6 on group \"world\" at train.cpp:44 in train_step"}])");
}

TEST(RankRows, OtherTimes_AreListedInTheOrderOfTheRanks) {
  EXPECT_EQ(json_text(rank_rows(golden::ok_report().rank_lines).rows),
            R"([{"ranks":[0,3],"state":"returned","times_ns":[1200000,1201000,1202000,1203000]}])");
}

std::vector<RankLine> lines_that_wait_for_each_other(int ranks) {
  std::vector<RankLine> lines;
  for (int rank = 0; rank < ranks; ++rank) {
    lines.push_back({rank, RankOutcome::blocked, golden::at_us(rank), "allreduce #1", "", "", {}});
    for (int other = 0; other <= ranks; ++other) {
      if (other != rank) lines.back().waits_for.push_back(other);
    }
  }
  lines.push_back({ranks, RankOutcome::stopped, golden::at_us(0), "", "", "", {}});
  return lines;
}

TEST(RankRows, ManyRanksThatWaitForEachOther_AreOne) {
  EXPECT_EQ(rank_rows(lines_that_wait_for_each_other(15)).rows.items().size(), 16u);
  const auto rows = rank_rows(lines_that_wait_for_each_other(16)).rows;
  ASSERT_EQ(rows.items().size(), 2u);
  EXPECT_EQ(json_text(rows.items()[0].at("waits_for")), "[0,16]");
  EXPECT_EQ(rows.items()[0].at("times_ns").items().size(), 16u);
  Report report;
  report.ranks = 101;
  report.rank_lines = lines_that_wait_for_each_other(100);
  EXPECT_THAT(to_text(report), HasSubstr("ranks 0-99: blocked in allreduce #1; wait for each other and for rank 100"));
  const auto json = to_json(report);
  EXPECT_THAT(json, HasSubstr("\"waits_for_runs\": [\n        0,\n        41,\n        43,\n        100\n      ]"));
  EXPECT_EQ(report_from_json(json).rank_lines[42].waits_for, report.rank_lines[42].waits_for);
}

TEST(RankRows, RunsThatAreNone_AreRefused) {
  Report report;
  report.ranks = 101;
  report.rank_lines = lines_that_wait_for_each_other(100);
  auto json = report_as_json(report);
  for (const auto& [runs, wrong] : std::vector<std::pair<Json, int>>{
           {Json::array({0, 3, 9}), 2}, {Json::array({5, 3}), 0}, {Json::array({0, 3, 3, 4}), 2}}) {
    json["rank_lines"].items()[0]["waits_for_runs"] = runs;
    try {
      report_from_json(json_text(json));
      ADD_FAILURE() << json_text(runs);
    } catch (const ReportFormatError& error) {
      EXPECT_EQ(
          std::string(error.what()),
          fmt::format("is no report of rehearse: rank_lines[0].waits_for_runs[{}] begins no run; right would be its "
                      "first and its last rank",
                      wrong));
    }
  }
}

// A short file must not take all memory.
TEST(RankRows, RunsOfVeryManyRanks_AreRefused) {
  Report report;
  report.ranks = 1 << 24;
  report.rank_lines = lines_that_wait_for_each_other(9);
  auto json = report_as_json(report);
  for (auto& line : json["rank_lines"].items()) line["waits_for_runs"] = Json::array({0, report.ranks - 1});
  try {
    report_from_json(json_text(json));
    ADD_FAILURE();
  } catch (const ReportFormatError& error) {
    EXPECT_EQ(std::string(error.what()),
              "is no report of rehearse: rank_lines[8].waits_for_runs[0] is a rank too many; right would be at most "
              "134217728 in all runs");
  }
}

TEST(RankRows, UnknownTime_IsLeftOut) {
  RankLine line;
  line.rank = 4;
  line.at = RankLine::kNotKnown;
  EXPECT_EQ(json_text(rank_rows({line}).rows), R"([{"ranks":[4,4],"state":"stopped"}])");
}

TEST(RankTimes, EqualOnes_AreOne) {
  EXPECT_EQ(json_text(rank_times({golden::at_us(1), golden::at_us(1)})), "[1000]");
  EXPECT_EQ(json_text(rank_times({golden::at_us(1), golden::at_us(2)})), "[1000,2000]");
}

TEST(CompiledFunctions, RanksThatCompiledAlike_AreOne) {
  compiler::Journal journal;
  for (const int rank : {2, 1, 0}) {
    const auto function = journal.add("step", rank, true);
    function->called();
    function->compiles("", {});
    if (rank != 1) continue;
    function->called();
    function->compiles("y is 4, guard y == 3 of entry 0", {});
  }
  EXPECT_EQ(json_text(compiled_functions(journal)),
            R"([{"name":"step","ranks":[0,0,2,2],"calls":1,"uses_collectives":true,)"
            R"("compiles":[{"call":1,"why":"","where":"","communicates":false}]},)"
            R"({"name":"step","ranks":[1,1],"calls":2,"uses_collectives":true,)"
            R"("compiles":[{"call":1,"why":"","where":"","communicates":false},)"
            R"({"call":2,"why":"y is 4, guard y == 3 of entry 0","where":"","communicates":false}]}])");
}

TEST(CompiledFunctions, TwoOfOneName_StayApart) {
  compiler::Journal journal;
  for (int function = 0; function < 2; ++function) {
    for (const int rank : {0, 1}) journal.add("forward", rank, false)->called();
  }
  EXPECT_EQ(json_text(compiled_functions(journal)),
            R"([{"name":"forward","ranks":[0,1],"calls":1,"uses_collectives":false,"compiles":[]},)"
            R"({"name":"forward","ranks":[0,1],"calls":1,"uses_collectives":false,"compiles":[]}])");
}

TEST(PageText, Html_HasNoMarkupAndNoControlCharactersLeft) {
  EXPECT_EQ(html_text("<b a=\"1\">&\x1b\x7f\n\t"), "&lt;b a=&quot;1&quot;&gt;&amp;\xEF\xBF\xBD\xEF\xBF\xBD\n\t");
  EXPECT_EQ(html_text("caf\xC3\xA9 \xff"), "caf\xC3\xA9 \xEF\xBF\xBD");
  EXPECT_EQ(html_text("a\xE2\x80\xAE"
                      "b\xE2\x81\xA6"),
            "a\xEF\xBF\xBD"
            "b\xEF\xBF\xBD");                            // U+202E, U+2066
  EXPECT_EQ(html_text("\xE2\x80\xA6"), "\xE2\x80\xA6");  // an ellipsis
  EXPECT_EQ(html_text("a\xC2\x9B"
                      "31m\xC2\x80"),
            "a\xEF\xBF\xBD"
            "31m\xEF\xBF\xBD");                  // U+009B begins an escape sequence of terminals
  EXPECT_EQ(html_text("\xC2\xA0"), "\xC2\xA0");  // a space
}

// Readers without scripts see the first 400 lines.
TEST(PageText, PlainTextOfManyLines_IsCutAfterTheSame) {
  const auto plain = [](const std::string& text) {
    std::ostringstream out;
    write_page(out, {"t", "w", PageTone::bad, "h", text}, Json::object());
    return out.str();
  };
  std::string lines;
  for (int line = 0; line < 399; ++line) lines += "line\n";
  for (const std::string first : {"\n", "first\n"}) {
    EXPECT_THAT(plain(first + lines + "the 401st"), HasSubstr("line\n...\n"));
    EXPECT_THAT(plain(first + lines + "the 401st"), testing::Not(HasSubstr("the 401st")));
    EXPECT_THAT(plain(first + lines), testing::Not(HasSubstr("line\n...\n")));
  }
}

TEST(PageText, ScriptJson_CannotEndItsElement) {
  const auto text = script_json(Json::array({"</script><!--\x01"}));
  EXPECT_EQ(text, R"(["\u003c/script>\u003c!--\u0001"])");
  EXPECT_EQ(parse_json(text).items().front().get<std::string>(), "</script><!--\x01");
}

TEST(PageText, Filled_DoesNotSearchWhatItPutIn) {
  EXPECT_EQ(filled("a {{x}} b {{y}}", {{"x", "{{y}}"}, {"y", "2"}}), "a {{y}} b 2");
}

class Excerpts : public ::testing::Test {
 protected:
  Excerpts() {
    std::ofstream out(file_);
    for (int line = 1; line <= 40; ++line) out << "line " << line << (line % 2 == 0 ? "\r\n" : "\n");
  }
  std::vector<SourceExcerpt> of(const std::vector<std::string>& texts) const {
    return source_excerpts(texts, {{"a-1.cpp", file_.string()}, {"gone.cpp", "/nowhere/gone.cpp"}});
  }

  const std::filesystem::path file_ = std::filesystem::path(::testing::TempDir()) / "page_excerpts.txt";
};

TEST_F(Excerpts, NearLines_AreOneExcerpt) {
  const auto excerpts = of({"at a-1.cpp:20 in f, from a-1.cpp:9 in g", "(a-1.cpp:38)"});
  ASSERT_EQ(excerpts.size(), 2u);
  EXPECT_EQ(excerpts[0].first, 4);
  EXPECT_EQ(excerpts[0].named, (std::vector<int>{9, 20}));
  EXPECT_EQ(excerpts[0].lines.size(), 22u);
  EXPECT_EQ(excerpts[0].lines[16], "line 20");
  EXPECT_EQ(excerpts[1].lines.back(), "line 40");
}

TEST_F(Excerpts, OtherFilesAndLinesThatAreNotThere_AreLeftOut) {
  EXPECT_TRUE(of({"a-1.cpp:50 in f", "other.cpp:3", "gone.cpp:1", "a-1.cpp: 3", ":7", "xa-1.cpp:7"}).empty());
}

TEST_F(Excerpts, ManyPlaces_AreBounded) {
  std::vector<std::string> texts;
  for (int line = 1; line <= 40; ++line) texts.push_back("a-1.cpp:" + std::to_string(line));
  const auto excerpts = of(texts);
  ASSERT_EQ(excerpts.size(), 1u);
  EXPECT_EQ(excerpts[0].lines.size(), 40u);
}

TEST(TimelineJson, Calls_AreWrittenAsDifferencesFromTheExpected) {
  Timeline timeline;
  timeline.groups = {{"world", "", {0, 1}}};
  timeline.signatures = {{"allreduce", "allreduce(sum)", ""}};
  timeline.kinds = {{}};
  timeline.calls = {{{0, 1, 10, 12, 20}, {0, 2, 20, 25, 30}}, {{0, 1, 12, 12, 20}, {0, 3, 20}}};
  timeline.spans = {{}, {}};
  const auto json = timeline_json(timeline, 1000);
  ByteText expected;
  for (const auto number : {2, 0, 20, 5, 17, 0, 0, 11, 11, 2, 0, 24, 1, 1, 1, 2, 0, 0, 0}) expected.add(number);
  EXPECT_EQ(json.at("calls").get<std::string>(), expected.base64());
  EXPECT_EQ(json_text(json.at("kinds")), "[[0,0,0,0,0,0]]");
  EXPECT_EQ(json_text(json.at("groups")), R"([{"name":"world","description":"","ranks":[0,1]}])");
}

TEST(TimelineJson, FailedCalls_AreWrittenAsDistances) {
  Timeline timeline;
  timeline.kinds = {{}};
  timeline.calls = {{{0, 1, 10, 12, 20, true}, {0, 2, 20, 25, 30}},
                    {{0, 1, 12, 12, 20}, {0, 3, 20, Timeline::kNever, 25, true}}};
  timeline.spans = {{}, {}};
  ByteText expected;
  for (const auto distance : {0, 2}) expected.add(distance);
  EXPECT_EQ(timeline_json(timeline, 1000).at("failed").get<std::string>(), expected.base64());
}

TEST(Timeline, Shortened_KeepsTheLatestOfEachRank) {
  auto timeline = test::skips_a_call(4, 10).timeline;
  const auto last = timeline.calls[0].back();
  shorten_calls(timeline, 8);
  EXPECT_EQ(timeline.calls[0].size(), 2u);
  EXPECT_EQ(timeline.calls[0].back(), last);
  EXPECT_EQ(timeline.left_out, 31u);  // rank 2 had made 9 calls, the others 10
}

TEST(TimelineJson, LongOnes_HaveTheirLatestCallsAndSpansAndSayHowManyAreMissing) {
  const auto timeline = test::skips_a_call(64, 100).timeline;
  const auto whole = timeline_json(timeline, 10'000'000), part = timeline_json(timeline, 30'000);
  EXPECT_EQ(whole.at("left_out").get<int>() + whole.at("spans_left_out").get<int>(), 0);
  EXPECT_GT(whole.at("calls").get<std::string>().size(), 40'000u);
  EXPECT_LE(part.at("spans").get<std::string>().size(), 10'000u);
  EXPECT_LE(part.at("calls").get<std::string>().size(), 20'000u);
  EXPECT_GT(part.at("calls").get<std::string>().size(), 15'000u);
  EXPECT_GT(part.at("left_out").get<int>(), 3000);
  EXPECT_GT(part.at("spans_left_out").get<int>(), 3000);
}

TEST(ReportPage, EveryVerdict_HoldsItsReport) {
  for (const auto& sample : golden::samples()) {
    const auto data = page_data_in(page_of(sample.report));
    auto report = report_as_json(sample.report);
    report["rank_lines"] = rank_rows(sample.report.rank_lines).rows;
    EXPECT_EQ(json_text(data.at("runs").items().front().at("report")), json_text(report)) << sample.name;
    EXPECT_EQ(data.at("kind").get<std::string>(), "report");
  }
}

TEST(ReportPage, BeforeScriptsRun_ItHasTheVerdictAndTheTextOfTheReport) {
  const auto page = page_of(golden::deadlock_report());
  EXPECT_THAT(page, HasSubstr("<title>DEADLOCK: lm_ddp, seed 7</title>"));
  EXPECT_THAT(page, HasSubstr("</span>DEADLOCK</h1>\n<p class=\"headline\" id=\"headline\">rank 2 is out of step from "
                              "#5 of group &quot;world&quot; on: "));
  EXPECT_THAT(page, HasSubstr("; allreduce #7 on group &quot;world&quot;: rank 2 has ended and will never come</p>"));
  EXPECT_THAT(page, HasSubstr("<noscript><pre class=\"wrap plain\">DEADLOCK: rank 2 is out of step"));
  EXPECT_THAT(page, Not(HasSubstr("{{")));
}

TEST(ReportPage, OfDumps_IsTitledByTheirRanks) {
  Report dumps;
  dumps.dumps.emplace().ranks = {0, 1};
  EXPECT_THAT(page_of(dumps), HasSubstr("<title>OK: dumps of ranks 0-1</title>"));
}

TEST(ReportPage, Tone_IsThatOfWhatIsKnown) {
  EXPECT_THAT(page_of(golden::ok_report()), HasSubstr("<header class=\"top good\">"));
  EXPECT_THAT(page_of(golden::deadlock_report()), HasSubstr("<header class=\"top bad\">"));
  Report dumps;
  dumps.dumps.emplace().without_dump = {2};
  EXPECT_THAT(page_of(dumps), HasSubstr("<header class=\"top partial\">"));
  EXPECT_EQ(to_text(dumps, {.color = true}).substr(0, 7), "\x1b[1;33m");
}

TEST(ReportPage, OfWhatPrograms_NothingIsMarkup) {
  auto report = golden::ok_report();
  const std::string evil = "</script></pre><script>alert(1)</script>";
  report.headline = report.program = report.replay = evil;
  const auto page = page_of(report);
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_EQ(page_data_in(page).at("runs").items().front().at("report").at("headline").get<std::string>(), evil);
}

// Each rank waits for another one, so that no two share a row.
TEST(ReportPage, OfManyRanksThatAllDoSomethingElse_IsBelow15MB) {
  auto world = test::skips_a_call(65536, 12);
  for (auto& line : world.report.rank_lines) {
    world.report.wait_cycle.push_back(fmt::format("rank {} waits for rank {}", line.rank, (line.rank + 1) % 65536));
    line.waits_for = {(line.rank + 1) % 65536};
    line.doing = fmt::format("send #1 on group \"world\" to rank {}", line.waits_for.front());
  }
  std::ostringstream out;
  write_report_page(out, world.report, page_run({.report = world.report, .timeline = &world.timeline}));
  const auto page = out.str();
  EXPECT_LT(page.size(), 15'000'000u);
  const auto run = page_data_in(page).at("runs").items().front();
  EXPECT_EQ(run.at("ranks_left_out").get<int>(), 65536 - 20000);
  EXPECT_EQ(run.at("waits_left_out").get<int>(), 65536 - 2000);
  // The page keeps the rank that returned, which readers look for.
  EXPECT_EQ(json_text(run.at("report").at("rank_lines").items()[2].at("state")), "\"returned\"");
  EXPECT_GT(page.size(), 10'000'000u);
}

TEST(ReportPage, LoadsNothing) {
  const auto page = page_of(golden::ok_report());
  EXPECT_THAT(page, HasSubstr("content=\"default-src 'none';"));
  for (const char* loads : {" src=", "@import", "url(", "fetch(", "XMLHttpRequest", "import("})
    EXPECT_THAT(page, Not(HasSubstr(loads)));
}

TEST(ReportPage, EqualReports_GiveEqualBytes) {
  EXPECT_EQ(page_of(golden::mismatch_report()), page_of(golden::mismatch_report()));
}

TEST(PageData, OtherFiles_AreRefusedWithWhatIsWrong) {
  const auto problem_of = [](const std::string& html) -> std::string {
    try {
      page_data_in(html);
      return "";
    } catch (const ReportFormatError& error) {
      return error.what();
    }
  };
  EXPECT_EQ(problem_of("<html>"), "is no page of rehearse: it has no data");
  auto page = page_of(golden::ok_report());
  const std::string key = "\"rehearse_page\":1";
  page.replace(page.find(key), key.size(), "\"rehearse_page\":9");
  EXPECT_EQ(problem_of(page), "is a page of format 9; this rehearse reads format 1");
}

}  // namespace
}  // namespace rehearse::sim
