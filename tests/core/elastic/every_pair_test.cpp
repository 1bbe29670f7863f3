// SPDX-License-Identifier: BSD-3-Clause
// Contract: if any two ranks crash, or one rank crashes twice, in any of their calls, the job still ends with the
// parameters of a run without faults, to the bit. The job has four ranks, and the tests try each pair of calls.
#include <fmt/format.h>

#include "elastic_world.h"

namespace rehearse::test {
namespace {

constexpr int kFour = 4;
const elastic_ddp::Job kTwoSteps{.steps = 2, .rows = 8, .save_every = 1};

// Runs the job with each pair of crashes. Returns the number of pairs in which both crashes happened.
int crash_in_pairs(const std::string& how) {
  const auto without = run_elastic(elastic_world({}, kFour), kTwoSteps);
  int pairs = 0;
  bool any_first = true;
  for (int first = 1; any_first; ++first) {
    any_first = false;
    for (int one = 0; one < kFour; ++one) {
      for (int other = 0; other < kFour; ++other) {
        for (int second = 1;; ++second) {
          if (one == other && second <= first) continue;
          const std::vector<std::string> faults{fmt::format("crash rank={} call=#{} {}", one, first, how),
                                                fmt::format("crash rank={} call=#{} {}", other, second, how)};
          const auto run = run_elastic(elastic_world(faults, kFour), kTwoSteps);
          any_first = any_first || run.fired(0);
          if (!run.fired(0) || !run.fired(1)) break;
          ++pairs;
          expect_all_have(run, without.parameters[0], faults[0] + " and " + faults[1]);
        }
      }
    }
  }
  return pairs;
}

TEST(EveryPair, PeersDisconnect_EndsAsWithoutFaults) {
  EXPECT_GE(crash_in_pairs("peers=disconnect restart=5ms"), 16 * 4 * 4);
}

TEST(EveryPair, PeersTimeOut_EndsAsWithoutFaults) {
  EXPECT_GE(crash_in_pairs("peers=timeout restart=5ms"), 16 * 4 * 4);
}

}  // namespace
}  // namespace rehearse::test
