// SPDX-License-Identifier: BSD-3-Clause
// Contract: the memory checkers are on in runs and sweeps, unless a scenario or the command line turns them off. The
// log and replay keep what the run had.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/process.h"

namespace rehearse::test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kFound = "CHECK FAILED: rank 1: aten::add_ at buffers_job.cpp:17 ";

class Checks : public ::testing::Test {
 protected:
  void scenario(const std::string& program, const std::string& world = "") const {
    write_file(folder_ / "job.toml", "program = \"" + program + "\"\n[world]\nranks = 2\n" + world);
  }
  Finished job(const std::vector<std::string>& arguments) const {
    return run_process(CLI_BUFFERS_JOB, arguments, folder_);
  }

  const std::filesystem::path folder_ = fresh_folder();
};

TEST_F(Checks, AreOnByDefault_AndInReplay) {
  scenario("in_flight");
  const auto finished = job({"run", "job.toml", "--quiet"});
  EXPECT_EQ(finished.exit_code, 6);
  EXPECT_THAT(finished.out, StartsWith(kFound));
  const auto again = job({"replay", "rehearse-out/job/run.rlog"});
  EXPECT_EQ(again.exit_code, 6);
  EXPECT_THAT(again.out, HasSubstr(kFound));
}

TEST_F(Checks, ThatTheUserTurnsOff_AreOffInReplay) {
  scenario("in_flight");
  EXPECT_EQ(job({"run", "job.toml", "--checks=none"}).exit_code, 0);
  EXPECT_EQ(job({"replay", "rehearse-out/job/run.rlog"}).exit_code, 0);
  scenario("global", "[checks]\nlevel = \"none\"\n");
  EXPECT_EQ(job({"run", "job.toml"}).exit_code, 0);
  EXPECT_EQ(job({"run", "job.toml", "--checks=default"}).exit_code, 6);
  EXPECT_EQ(job({"run", "job.toml", "--check-sharing"}).exit_code, 6);
  EXPECT_THAT(job({"run", "job.toml", "--checks=some"}).err,
              HasSubstr("--checks is \"some\"; it takes one of none, default, all"));
}

TEST_F(Checks, OfAScenario_AreMade) {
  scenario("in_flight", "[checks]\nbuffers = false\n");
  EXPECT_EQ(job({"run", "job.toml"}).exit_code, 0);
  scenario("in_flight", "[checks]\nlevel = \"none\"\nbuffers = true\n");
  EXPECT_THAT(job({"run", "job.toml", "--quiet"}).out, StartsWith(kFound));
  scenario("global", "[checks]\nlevel = \"none\"\nsharing = true\n");
  EXPECT_THAT(
      job({"run", "job.toml", "--quiet"}).out,
      StartsWith("CHECK FAILED: ranks 0 and 1 use the same memory, which processes do not share: rank 0 writes "));
}

TEST_F(Checks, OfASweep_FindTheSeed) {
  scenario("global");
  EXPECT_EQ(job({"sweep", "job.toml", "--seeds=1..3", "--jobs=1", "--quiet"}).exit_code, 6);
  EXPECT_EQ(job({"sweep", "job.toml", "--seeds=1..3", "--jobs=1", "--checks=none", "--quiet"}).exit_code, 0);
}

}  // namespace
}  // namespace rehearse::test
