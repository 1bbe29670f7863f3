// SPDX-License-Identifier: BSD-3-Clause
// Contract: a sweep of 300 seeds finds the races of docs/DETERMINISM.md's table, each at least so often, and no
// strategy finds anything in the right programs that come nearest.
#include <algorithm>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include <rehearse/sim/schedule.h>

#include "race_programs.h"

namespace rehearse_test {
namespace {

using rehearse::sim::portfolio;

TEST(Sweep, OfThreeHundredSeeds_FindsTheRaces) {
  const std::map<std::string, int> least = {
      {"removed file", 100},     {"removed keys", 130}, {"missing folder", 200}, {"key after a collective", 50},
      {"parameter server", 150}, {"leader race", 50},   {"two looks", 20}};
  for (const auto& program : race_programs()) {
    const auto row = least.find(program.name);
    if (row == least.end()) continue;
    EXPECT_GE(found_by_sweep(program, 1, 300), row->second) << program.name;
  }
}

TEST(Sweep, OfRightPrograms_FindsNothing) {
  for (const auto& program : race_programs()) {
    if (!program.is_right) continue;
    std::vector<std::string> failures;
    EXPECT_EQ(found_by_sweep(program, 1, 300, &failures), 0) << program.name << ": " << failures.front();
  }
}

}  // namespace
}  // namespace rehearse_test
