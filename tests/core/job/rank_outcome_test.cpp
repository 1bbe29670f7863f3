// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/job/rank_outcome.h>

#include <gtest/gtest.h>

namespace rehearse {
namespace {

// JSON reports contain these names.
TEST(RankOutcome, EachOne_HasItsNameAndIsFoundByIt) {
  struct Row {
    RankOutcome outcome;
    const char* name;
  };
  const Row rows[] = {
      {RankOutcome::returned, "returned"},
      {RankOutcome::failed, "failed"},
      {RankOutcome::blocked, "blocked"},
      {RankOutcome::stopped, "stopped"},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(to_string(row.outcome), row.name);
    EXPECT_EQ(rank_outcome_from_string(row.name), row.outcome) << row.name;
  }
}

TEST(RankOutcome, UnknownName_IsNothing) {
  for (const char* name : {"", "Returned", "return", "returned "}) {
    EXPECT_EQ(rank_outcome_from_string(name), std::nullopt) << name;
  }
}

}  // namespace
}  // namespace rehearse
