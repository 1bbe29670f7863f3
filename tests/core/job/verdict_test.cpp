// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/job/verdict.h>

#include <gtest/gtest.h>

namespace rehearse {
namespace {

// Scripts compare these codes, and people search for these words.
TEST(Verdict, EachOne_HasItsNameAndExitCode) {
  struct Row {
    Verdict verdict;
    const char* name;
    int code;
  };
  const Row rows[] = {
      {Verdict::ok, "OK", 0},
      {Verdict::rank_failed, "RANK FAILED", 1},
      {Verdict::mismatch, "MISMATCH", 2},
      {Verdict::deadlock, "DEADLOCK", 3},
      {Verdict::nondeterminism, "NONDETERMINISM", 4},
      {Verdict::livelock, "LIVELOCK", 5},
      {Verdict::step_budget, "STEP BUDGET", 5},
      {Verdict::check_failed, "CHECK FAILED", 6},
      {Verdict::timeout, "TIMEOUT", 8},
      {Verdict::interrupted, "INTERRUPTED", 130},
      {Verdict::crashed, "CRASHED", 9},
      {Verdict::fault_not_fired, "FAULT NOT FIRED", 7},
      {Verdict::out_of_memory, "OUT OF MEMORY", 10},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(to_string(row.verdict), row.name);
    EXPECT_EQ(exit_code(row.verdict), row.code) << row.name;
    EXPECT_EQ(verdict_from_string(row.name), row.verdict) << row.name;
  }
  EXPECT_EQ(all_verdicts().size(), std::size(rows));
  EXPECT_EQ(verdict_from_string("ok"), std::nullopt);
  EXPECT_EQ(verdict_from_string(""), std::nullopt);
}

}  // namespace
}  // namespace rehearse
