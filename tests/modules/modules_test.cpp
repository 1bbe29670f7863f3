// SPDX-License-Identifier: BSD-3-Clause
// Contract: if a program is a shared object, each rank has its own globals, statics and thread_locals, fresh in every
// run. Reports name the program's lines. A program that registers operators is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/process.h"

namespace rehearse::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class Modules : public ::testing::Test {
 protected:
  void scenario(const std::string& program, const std::string& world = "") const {
    write_file(folder_ / "job.toml", "program = \"" + program + "\"\n[world]\nranks = 4\n" + world);
  }
  Finished run(const char* job, const std::vector<std::string>& arguments) const {
    return run_process(job, arguments, folder_);
  }

  const std::filesystem::path folder_ = fresh_folder();
};

TEST_F(Modules, EachRankHasItsOwn_InAnExecutableAllShare) {
  scenario("counts");
  EXPECT_EQ(run(MODULE_JOB, {"run", "job.toml"}).exit_code, 0);
  EXPECT_EQ(run(PLAIN_JOB, {"run", "job.toml"}).exit_code, 6);
}

TEST_F(Modules, EachRunStartsAfresh) {
  scenario("counts");
  EXPECT_EQ(run(MODULE_JOB, {"sweep", "job.toml", "--seeds=1..40", "--jobs=1"}).exit_code, 0);
  EXPECT_EQ(run(MODULE_JOB, {"run", "job.toml", "--check-determinism"}).exit_code, 0);
}

TEST_F(Modules, GlobalTensor_IsTheRanksOwn) {
  scenario("reduces", "[checks]\nsharing = true\n");
  EXPECT_EQ(run(MODULE_JOB, {"run", "job.toml"}).exit_code, 0);
  EXPECT_THAT(run(PLAIN_JOB, {"run", "job.toml", "--quiet"}).out,
              HasSubstr(" use the same memory, which processes do not share: rank "));
}

TEST_F(Modules, Failure_NamesTheLineAndReplays) {
  scenario("throws");
  const auto finished = run(MODULE_JOB, {"run", "job.toml", "--quiet"});
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_THAT(finished.out, StartsWith("RANK FAILED: rank 1: "));
  EXPECT_THAT(finished.out, HasSubstr("thrown by rank 1"));
  EXPECT_THAT(finished.out, HasSubstr("counters.cpp:"));
  EXPECT_THAT(run(MODULE_JOB, {"replay", "rehearse-out/job/run.rlog"}).out, HasSubstr("the same run as in the log"));
}

TEST_F(Modules, Programs_AreListed) {
  EXPECT_EQ(run(MODULE_JOB, {"list", "--json"}).out, run(PLAIN_JOB, {"list", "--json"}).out);
}

TEST_F(Modules, OperatorsOfItsOwn_AreRefused) {
  const auto finished = run(OPERATOR_JOB, {"list"});
  EXPECT_EQ(finished.exit_code, 64);
  EXPECT_THAT(finished.err, Not(HasSubstr("internal error")));
  EXPECT_THAT(finished.err,
              HasSubstr("registers operators (TORCH_LIBRARY), which are the process's, and not a rank's"));
}

}  // namespace
}  // namespace rehearse::test
