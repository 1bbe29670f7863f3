// SPDX-License-Identifier: BSD-3-Clause
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "cli/process.h"

// Contract: a seed picks the run, whatever the addresses: two processes, laid out differently by the system,
// take the same way for each of 200 seeds; and different seeds take different ways.
namespace rehearse::test {
namespace {

TEST(Determinism, TwoHundredSeedsInTwoProcesses_TakeTheSameWays) {
  const auto folder = fresh_folder();
  const auto first = run_process(DETERMINISM_DRIVER, {"200"}, folder);
  const auto second = run_process(DETERMINISM_DRIVER, {"200"}, folder);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_EQ(first.out, second.out);

  std::set<std::string> identities;
  std::istringstream lines(first.out);
  std::string seed, verdict, identity;
  while (lines >> seed >> verdict >> identity) {
    EXPECT_EQ(verdict, "OK") << "seed " << seed;
    identities.insert(identity);
  }
  EXPECT_EQ(identities.size(), 200u);
}

}  // namespace
}  // namespace rehearse::test
