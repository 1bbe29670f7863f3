// SPDX-License-Identifier: BSD-3-Clause
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/process.h"

// Contract: `validate` runs a scenario in simulation and by processes, and says whether both agree. For a correct
// program, they do. For each kind of mistake, both have the same verdict and, except after SIGKILL, the same culprit.
namespace rehearse::test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class Validate : public ::testing::Test {
 protected:
  void SetUp() override {
#ifndef CLI_HAS_REAL
    GTEST_SKIP() << "built without the real mode (REHEARSE_REAL=OFF)";
#endif
  }

  // `timeout` limits the ranks' calls. Keep it long unless a call is to expire: a busy machine takes seconds to start a
  // process.
  json validated(const std::string& program, const std::string& more = "", const char* executable = CLI_JOB,
                 const std::string& timeout = "60s") const {
    write_file(folder_ / "job.toml",
               "program = \"" + program + "\"\n[world]\nranks = 3\ntimeout = \"" + timeout + "\"\n" + more);
    const auto finished = run_process(executable, {"validate", "job.toml", "--with=gloo", "--json", "--quiet"}, folder_,
                                      {"REHEARSE_CHECK_TIMEOUT=3"});
    EXPECT_EQ(finished.err, "");
    const auto result = json::parse(finished.out, nullptr, false);
    EXPECT_EQ(finished.exit_code, result.value("agree", false) ? 0 : 7) << finished.out;
    return result;
  }

  void expect_agreement(const json& result, const char* verdict, const std::vector<int>& culprits) const {
    EXPECT_EQ(result["agree"], true) << result.dump(1);
    for (const auto& run : result["runs"]) {
      EXPECT_EQ(run["verdict"], verdict) << run.dump(1);
      EXPECT_EQ(run["culprits"], json(culprits)) << run.dump(1);
    }
  }

  const std::filesystem::path folder_ = fresh_folder();
};

TEST_F(Validate, AProgramThatIsRight_AgreesToTheBit) {
  const auto result = validated("tells", "[parameters]\nintegers = true\n", CLI_MODES_JOB);
  expect_agreement(result, "OK", {});
  EXPECT_EQ(result["runs"][0]["calls"], 3);
  EXPECT_EQ(result["runs"][1]["calls"], 3);
  EXPECT_EQ(result["calls_alike"], 3);
  EXPECT_EQ(result["results_bit_equal"], 6);
  EXPECT_EQ(json::parse(read_file(folder_ / "rehearse-out/job/validation.json")), result);
}

TEST_F(Validate, FloatingPointSums_AgreeWithinTheTolerance) {
  const auto result = validated("tells", "", CLI_MODES_JOB);
  expect_agreement(result, "OK", {});
  EXPECT_EQ(result["results_bit_equal"].get<int>() + result["results_within_tolerance"].get<int>(), 6);
}

// No rank of a real run has the whole model, so only the simulation checks it.
TEST_F(Validate, GradientsOfAShardedModel_AreCheckedBySimulationOnly) {
  expect_agreement(validated("shards", "", CLI_MODES_JOB), "OK", {});
}

TEST_F(Validate, CallsInAnotherOrder_AreTheSameMismatch) { expect_agreement(validated("swap"), "MISMATCH", {1}); }

TEST_F(Validate, AnotherShape_IsTheSameMismatch) {
  expect_agreement(validated("differs", "", CLI_MODES_JOB), "MISMATCH", {1});
}

TEST_F(Validate, AMissingRank_IsTheSameDeadlock) { expect_agreement(validated("skip"), "DEADLOCK", {1}); }

TEST_F(Validate, AnException_IsTheSameRanks) { expect_agreement(validated("throws"), "RANK FAILED", {1}); }

TEST_F(Validate, ALateRank_IsTheSameTimeout) {
  expect_agreement(validated("late", "[parameters]\nseconds = 6.0\n", CLI_MODES_JOB, "4s"), "TIMEOUT", {1});
}

TEST_F(Validate, ACrash_IsTheSameRanks) { expect_agreement(validated("dies"), "CRASHED", {2}); }

TEST_F(Validate, StdTerminate_IsTheSameFailure) {
  for (const std::string by : {"exit0", "terminate", "thread"})
    expect_agreement(validated("dies", "[parameters]\nby = \"" + by + "\"\n"), "RANK FAILED", {2});
}

// All ranks of a simulation share one process. So after SIGKILL, the simulation's report does not say which rank died.
TEST_F(Validate, Sigkill_IsTheSameCrash_OfARankThatTheSimulationDoesNotKnow) {
  const auto result = validated("dies", "[parameters]\nby = \"kill\"\n");
  EXPECT_EQ(result["agree"], true) << result.dump(1);
  EXPECT_EQ(result["runs"][0]["verdict"], "CRASHED");
  EXPECT_EQ(result["runs"][0]["culprits"], json::array());
  EXPECT_EQ(result["runs"][1]["verdict"], "CRASHED");
  EXPECT_EQ(result["runs"][1]["culprits"], json({2}));
}

TEST_F(Validate, ForPeople_PutsBothSideBySide) {
  write_file(folder_ / "job.toml", "program = \"throws\"\n[world]\nranks = 2\n");
  const auto finished = run_process(CLI_JOB, {"validate", "job.toml", "--with=gloo"}, folder_);
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("\nAGREE: simulation and gloo both end as RANK FAILED\n"));
  EXPECT_THAT(finished.out, HasSubstr("\nculprit  rank 1        rank 1\n"));
  EXPECT_THAT(finished.out, HasSubstr("\ngloo: rank 1: the dataset is empty\n"));
}

TEST_F(Validate, FilesOfAnEarlierRun_Stay) {
  write_file(folder_ / "job.toml", "program = \"tells\"\n[world]\nranks = 2\n");
  ASSERT_EQ(run_process(CLI_MODES_JOB, {"run", "job.toml", "--with=gloo", "--quiet"}, folder_).exit_code, 0);
  ASSERT_EQ(
      run_process(CLI_MODES_JOB, {"run", "job.toml", "--output=rehearse-out/other", "--quiet"}, folder_).exit_code, 0);
  const auto out = folder_ / "rehearse-out/job";
  std::filesystem::copy(folder_ / "rehearse-out/other/run.rlog", out / "run.rlog");
  const char* const files[] = {"run.rlog",   "report.txt",   "report.json",       "trace.json",
                               "calls.json", "results.json", "rank-1/report.json"};
  std::vector<std::string> before;
  for (const auto* file : files) before.push_back(read_file(out / file));
  write_file(out / "validation.json", "of an earlier one");
  const auto finished = run_process(CLI_MODES_JOB, {"validate", "job.toml", "--with=gloo", "--quiet"}, folder_);
  EXPECT_EQ(finished.exit_code, 0) << finished.out << finished.err;
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_NE(before[i], "") << files[i];
    EXPECT_EQ(read_file(out / files[i]), before[i]) << files[i];
  }
  EXPECT_THAT(read_file(out / "validation.json"), HasSubstr("\"agree\""));
}

TEST_F(Validate, WithoutGpus_SaysWhatIsMissing) {
  if (std::filesystem::exists("/dev/nvidia0")) GTEST_SKIP() << "there is a GPU";
  write_file(folder_ / "job.toml", "program = \"tells\"\n");
  const auto finished = run_process(CLI_MODES_JOB, {"validate", "job.toml", "--with=nccl"}, folder_);
  EXPECT_EQ(finished.exit_code, 69) << finished.out;
  EXPECT_THAT(finished.err, StartsWith("the run by nccl left no report; it said:\n"));
}

}  // namespace
}  // namespace rehearse::test
