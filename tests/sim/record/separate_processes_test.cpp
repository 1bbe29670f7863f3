// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "cli/process.h"

// Contract: a seed determines the run and its results, whatever the addresses and whatever ran before. Two processes
// with different memory layouts make the same run for each of 200 seeds and compute the same bits, although the second
// one runs the seeds in reverse. Different seeds make different runs.
namespace rehearse::test {
namespace {

struct Run {
  int seed = 0;
  std::string verdict, identity, results;
  bool operator==(const Run&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Run& run) {
  return out << "seed " << run.seed << ": " << run.verdict << ' ' << run.identity << ' ' << run.results;
}

struct Process {
  std::string stack, code;  // addresses
  std::vector<Run> runs;
};

Process seeds_in_a_process(const std::string& first, const std::string& last) {
  const auto finished = run_process(DETERMINISM_DRIVER, {first, last}, fresh_folder());
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  std::istringstream out(finished.out);
  Process process;
  out >> process.stack >> process.code;
  for (Run run; out >> run.seed >> run.verdict >> run.identity >> run.results;) process.runs.push_back(run);
  return process;
}

TEST(Determinism, TwoHundredSeedsInTwoProcesses_TakeTheSameWaysToTheSameBits) {
  const auto rising = seeds_in_a_process("1", "200");
  auto falling = seeds_in_a_process("200", "1");
  EXPECT_NE(rising.stack, falling.stack) << "address space layout randomisation is off: nothing would be shown";
  EXPECT_NE(rising.code, falling.code);
  std::reverse(falling.runs.begin(), falling.runs.end());
  EXPECT_EQ(rising.runs, falling.runs);

  ASSERT_EQ(rising.runs.size(), 200u);
  std::set<std::string> identities, results;
  for (const auto& run : rising.runs) {
    EXPECT_EQ(run.verdict, "OK") << run;
    identities.insert(run.identity);
    results.insert(run.results);
  }
  EXPECT_EQ(identities.size(), 200u);
  EXPECT_EQ(results.size(), 200u);
}

}  // namespace
}  // namespace rehearse::test
