// SPDX-License-Identifier: BSD-3-Clause
#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/process.h"

// Contract: a run leaves a page with all of its calls or, if it crashes, with its report alone. A failing seed of a
// sweep leaves a page with its last calls. A validation, and a sweep with failures, leave one page for all runs. `html`
// makes a page from a log or a report, and uses no other run's files.
namespace rehearse::test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class Pages : public ::testing::Test {
 protected:
  void scenario(const std::string& program, const std::string& more = "") const {
    write_file(folder_ / (program + ".toml"), "program = \"" + program + "\"\n[world]\nranks = 4\n" + more);
  }

  Finished job(const std::vector<std::string>& arguments) const {
    return run_process(CLI_JOB, arguments, folder_, {"ASAN_OPTIONS=handle_segv=0"});
  }

  bool has(const std::string& file) const { return std::filesystem::exists(folder_ / "rehearse-out" / file); }

  // The data that the page's script reads.
  json data_of(const std::string& file) const {
    const auto page = read_file(folder_ / "rehearse-out" / file);
    const std::string begin = "id=\"data\">";
    const auto from = page.find(begin) + begin.size();
    return json::parse(page.substr(from, page.find("</script>", from) - from));
  }
  json run_in(const std::string& file) const { return data_of(file)["runs"][0]; }

  const std::filesystem::path folder_ = fresh_folder();
};

TEST_F(Pages, Run_HasReportCulpritCallsAndLines) {
  scenario("skip");
  ASSERT_EQ(job({"run", "skip.toml", "--quiet"}).exit_code, 3);
  const auto run = run_in("skip/report.html");
  EXPECT_EQ(run["report"]["verdict"], "DEADLOCK");
  EXPECT_EQ(run["culprits"], json({1, 1}));
  EXPECT_EQ(run["timeline"]["groups"][0]["ranks"], json({0, 3}));
  EXPECT_EQ(run["timeline"]["signatures"][0][0], "allreduce");
  EXPECT_EQ(run["timeline"]["left_out"], 0);
  EXPECT_THAT(run["timeline"]["sites"][1][0], HasSubstr("job.cpp:"));
}

TEST_F(Pages, ScenarioThatSaysFalse_LeavesNone) {
  scenario("skip", "[output]\nhtml = false\n");
  const auto finished = job({"run", "skip.toml", "--quiet"});
  EXPECT_THAT(finished.out, Not(HasSubstr("report.html")));
  EXPECT_FALSE(has("skip/report.html"));
}

TEST_F(Pages, RunThatCrashed_HasItsReportAlone) {
  scenario("dies");
  ASSERT_EQ(job({"run", "dies.toml", "--quiet"}).exit_code, 9);
  const auto run = run_in("dies/report.html");
  EXPECT_EQ(run["report"]["verdict"], "CRASHED");
  EXPECT_FALSE(run.contains("timeline"));
}

TEST_F(Pages, Html_MakesThePageAgainOfTheLogOrTheReport) {
  scenario("skip");
  ASSERT_EQ(job({"run", "skip.toml", "--quiet"}).exit_code, 3);
  const auto first = run_in("skip/report.html");
  for (const char* file : {"run.rlog", "report.json"}) {
    std::filesystem::remove(folder_ / "rehearse-out/skip/report.html");
    const auto finished = job({"html", std::string("rehearse-out/skip/") + file});
    EXPECT_EQ(finished.exit_code, 0);
    EXPECT_EQ(finished.out, "page: rehearse-out/skip/report.html\n");
    EXPECT_EQ(finished.err, "");
    const auto run = run_in("skip/report.html");
    EXPECT_EQ(run["report"], first["report"]) << file;
    EXPECT_EQ(run["culprits"], first["culprits"]);
    EXPECT_EQ(run["timeline"]["groups"], first["timeline"]["groups"]);
  }
}

TEST_F(Pages, HtmlWithoutATrace_TakesTheCallsOfTheEarlierPage) {
  scenario("skip", "[output]\ntrace = false\n");
  ASSERT_EQ(job({"run", "skip.toml", "--quiet"}).exit_code, 3);
  const auto first = run_in("skip/report.html");
  EXPECT_EQ(job({"html", "rehearse-out/skip/run.rlog"}).out, "page: rehearse-out/skip/report.html\n");
  EXPECT_EQ(run_in("skip/report.html"), first);
  std::filesystem::remove(folder_ / "rehearse-out/skip/report.html");
  EXPECT_EQ(job({"html", "rehearse-out/skip/run.rlog"}).out,
            "the page has no timeline: there is neither a page nor a trace.json of this run beside the input\n"
            "page: rehearse-out/skip/report.html\n");
  EXPECT_FALSE(run_in("skip/report.html").contains("timeline"));
}

TEST_F(Pages, Html_TakesNothingOfAnotherRun) {
  scenario("skip");
  const auto out = folder_ / "rehearse-out/skip";
  ASSERT_EQ(job({"run", "skip.toml", "--quiet", "--seed=2"}).exit_code, 3);
  std::filesystem::copy(out / "trace.json", folder_ / "trace.json");
  std::filesystem::copy(out / "report.html", folder_ / "report.html");
  ASSERT_EQ(job({"run", "skip.toml", "--quiet"}).exit_code, 3);
  std::filesystem::rename(folder_ / "trace.json", out / "trace.json");
  std::filesystem::rename(folder_ / "report.html", out / "report.html");
  EXPECT_THAT(job({"html", "rehearse-out/skip/run.rlog"}).out, HasSubstr("the page has no timeline"));
  const auto run = run_in("skip/report.html");
  EXPECT_FALSE(run.contains("timeline"));
  EXPECT_EQ(run["report"]["seed"], "0x1");
}

TEST_F(Pages, Html_TakesNoPathsFromTheFlightRecordOfAnotherRun) {
  scenario("skip");
  const auto out = folder_ / "rehearse-out/skip";
  write_file(folder_ / "job.cpp", std::string(2'000, '\n'));
  // The flight record of a run, as if call sites had been captured, of a program built from the file in this folder.
  const auto record_of = [&](const std::string& seed) {
    EXPECT_EQ(job({"run", "skip.toml", "--quiet", "--seed=" + seed}).exit_code, 3);
    const std::string frames =
        R"("frames":[{"name":"f","filename":")" + (folder_ / "job.cpp").string() + R"(","line":1}])";
    return std::regex_replace(read_file(out / "flight_recorder.json"), std::regex(R"("frames":\[\])"), frames);
  };
  const auto page_with = [&](const std::string& record) {
    std::filesystem::remove(out / "report.html");
    write_file(out / "flight_recorder.json", record);
    EXPECT_EQ(job({"html", "rehearse-out/skip/run.rlog"}).out, "page: rehearse-out/skip/report.html\n");
    return run_in("skip/report.html");
  };
  const auto other = record_of("2"), own = record_of("1");
  EXPECT_EQ(page_with(own)["sources"][0]["path"], (folder_ / "job.cpp").string());
  const auto run = page_with(other);
  EXPECT_TRUE(run.contains("timeline"));
  EXPECT_THAT(run["sources"], IsEmpty());
}

TEST_F(Pages, Html_WritesToTheGivenPath) {
  scenario("sum");
  ASSERT_EQ(job({"run", "sum.toml", "--quiet"}).exit_code, 0);
  EXPECT_EQ(job({"html", "rehearse-out/sum/report.json", "--output=sum.html"}).out, "page: sum.html\n");
  EXPECT_THAT(read_file(folder_ / "sum.html"), HasSubstr("<title>OK: sum, seed 1</title>"));
  const auto nowhere = job({"html", "rehearse-out/sum/report.json", "--output=gone/sum.html"});
  EXPECT_EQ(nowhere.exit_code, 74);
  EXPECT_EQ(nowhere.err, "gone/sum.html: cannot be written: No such file or directory\n");
  EXPECT_EQ(job({"html", "sum.toml"}).exit_code, 64);
}

class SweepPages : public Pages {
 protected:
  json swept(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"sweep", "races.toml", "--seeds=1..60", "--keep-going", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto finished = job(arguments);
    EXPECT_THAT(finished.err, HasSubstr("page: rehearse-out/races/sweep.html\n"));
    return json::parse(finished.out);
  }
};

TEST_F(SweepPages, Bugs_AreThoseOfTheSweepAndLeadToPagesWithTheLastCalls) {
  scenario("races");
  const auto found = swept();
  const auto sweep = data_of("races/sweep.html")["sweep"];
  ASSERT_EQ(sweep["bugs"].size(), found["bugs"].size());
  for (std::size_t i = 0; i < found["bugs"].size(); ++i) {
    const auto& bug = sweep["bugs"][i];
    EXPECT_EQ(bug["verdict"], found["bugs"][i]["verdict"]);
    EXPECT_EQ(bug["count"], found["bugs"][i]["seeds"].size());
    EXPECT_EQ(bug["culprit"], found["bugs"][i]["culprit"]);
    for (const auto& seed : bug["seeds"]) {
      const auto page = seed["page"].get<std::string>();
      EXPECT_EQ(page, "seed-" + seed["seed"].get<std::string>() + "/report.html");
      EXPECT_TRUE(run_in("races/" + page).contains("timeline")) << page;
    }
  }
  EXPECT_EQ(sweep["ran"], 60);
  EXPECT_EQ(sweep["seeds"].size(), 60u);
}

TEST_F(SweepPages, NothingFound_LeavesNoneAndTakesTheOldOneAway) {
  scenario("sum");
  std::filesystem::create_directories(folder_ / "rehearse-out/sum");
  write_file(folder_ / "rehearse-out/sum/sweep.html", "old");
  EXPECT_EQ(job({"sweep", "sum.toml", "--seeds=1..3", "--quiet"}).exit_code, 0);
  EXPECT_FALSE(has("sum/sweep.html"));
}

TEST_F(SweepPages, MergedShards_LeaveThatOfTheWhole) {
  scenario("races");
  swept();
  const auto whole = data_of("races/sweep.html");
  for (const auto* const shard : {"--shard=1/2", "--shard=2/2"})
    job({"sweep", "races.toml", "--seeds=1..60", "--keep-going", "--quiet", shard});
  std::filesystem::remove(folder_ / "rehearse-out/races/sweep.html");
  EXPECT_THAT(job({"merge", "rehearse-out/races"}).out, HasSubstr("page: rehearse-out/races/sweep.html\n"));
  EXPECT_EQ(data_of("races/sweep.html"), whole);
}

class RealPages : public Pages {
 protected:
  void SetUp() override {
#ifndef CLI_HAS_REAL
    GTEST_SKIP() << "built without the real mode (REHEARSE_REAL=OFF)";
#endif
  }
};

TEST_F(RealPages, Validation_HasBothRunsWithTheirCalls) {
  scenario("skip", "timeout = \"60s\"\n");
  const auto finished =
      run_process(CLI_JOB, {"validate", "skip.toml", "--with=gloo", "--quiet"}, folder_, {"REHEARSE_CHECK_TIMEOUT=3"});
  EXPECT_THAT(finished.out, HasSubstr("files: rehearse-out/skip/validation.json, rehearse-out/skip/validation.html, "
                                      "rehearse-out/skip/simulation, rehearse-out/skip/real\n"));
  const auto data = data_of("skip/validation.html");
  EXPECT_EQ(data["kind"], "validation");
  EXPECT_EQ(data["validation"], json::parse(read_file(folder_ / "rehearse-out/skip/validation.json")));
  ASSERT_EQ(data["runs"].size(), 2u);
  EXPECT_EQ(data["runs"][0]["name"], "simulation");
  EXPECT_EQ(data["runs"][1]["name"], "gloo");
  for (const auto& run : data["runs"]) {
    EXPECT_EQ(run["report"]["verdict"], "DEADLOCK");
    EXPECT_EQ(run["timeline"]["groups"][0]["ranks"], json({0, 3}));
  }
}

}  // namespace
}  // namespace rehearse::test
