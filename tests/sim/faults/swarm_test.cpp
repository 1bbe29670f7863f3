// SPDX-License-Identifier: BSD-3-Clause
// Contract: a swarm's draws are choices of the Oracle, of the families that are given and no others, within their
// bounds; a family keeps what it says of who and when.
#include <chrono>
#include <set>
#include <string>

#include "faulty_world.h"

namespace rehearse::test {
namespace {

WorldOptions swarm_of(const std::vector<std::string>& families, std::uint64_t seed) {
  WorldOptions options = world_with({});
  options.seed = seed;
  options.swarm.on = true;
  for (const auto& text : families) options.swarm.families.push_back(parse_fault_family(text));
  return options;
}

TEST(Swarm, EachFamilyTakesPartInHalfOfTheRuns) {
  int pauses = 0, slows = 0;
  std::set<int> ranks;
  std::set<std::string> calls;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const auto report = run(swarm_of({"pause for=1ms", "slow factor=2"}, seed));
    EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
    EXPECT_LE(report.faults.size(), 2u);
    for (const auto& line : report.faults) {
      const auto fault = parse_fault(line.fault);
      EXPECT_TRUE(line.optional);
      ASSERT_EQ(fault.ranks.size(), 1u);
      ranks.insert(fault.ranks.front());
      if (fault.verb == Fault::Verb::slow) ++slows;
      if (fault.verb != Fault::Verb::pause) continue;
      ++pauses;
      ASSERT_TRUE(fault.call);
      EXPECT_LE(fault.call->number, 20u);
      EXPECT_EQ(line.times, 1u) << "each rank makes 20 calls: " << line.why_not;
      calls.insert(line.fault);
    }
  }
  EXPECT_GT(std::min(pauses, slows), 30);
  EXPECT_LT(std::max(pauses, slows), 70);
  EXPECT_EQ(ranks, (std::set<int>{0, 1, 2, 3}));
  EXPECT_GT(calls.size(), 20u);
}

TEST(Swarm, FaultsMost_BoundsARun) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    auto options = swarm_of({"pause for=1ms", "pause for=2ms", "pause for=3ms", "pause for=4ms"}, seed);
    options.swarm.faults_most = 1;
    EXPECT_LE(run(options).faults.size(), 1u);
  }
}

TEST(Swarm, KeepsWhatAFamilySays) {
  bool any = false;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto report = run(swarm_of({"pause rank=1-2 at=allreduce#4 for=1ms", "partition rank=0-1 for=1ms"}, seed));
    for (const auto& line : report.faults) {
      any = true;
      const auto fault = parse_fault(line.fault);
      if (fault.verb == Fault::Verb::partition) {
        EXPECT_EQ(fault.ranks, (std::vector<int>{0, 1}));
      } else {
        EXPECT_TRUE(fault.ranks == std::vector<int>{1} || fault.ranks == std::vector<int>{2});
        EXPECT_EQ(fault.at, (Fault::Point{"allreduce", 4}));
        EXPECT_FALSE(fault.call);
      }
    }
  }
  EXPECT_TRUE(any);
}

TEST(Swarm, Restarts_ComeAtTheirTime) {
  bool any = false;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const auto report = run(swarm_of({"restart after=5ms"}, seed), [](RankContext&) {});
    EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
    for (const auto& line : report.faults) {
      any = true;
      EXPECT_EQ(line.fired.at(0).at, VirtualTime(std::chrono::milliseconds(5)));
    }
  }
  EXPECT_TRUE(any);
}

TEST(Swarm, RoundRobin_DrawsNothing) {
  auto options = swarm_of({"crash"}, 1);
  options.schedule = Schedule::round_robin;
  EXPECT_TRUE(run(options).faults.empty());
}

TEST(Swarm, ThatMakesNoSense_IsRefused) {
  auto options = swarm_of({}, 1);
  EXPECT_THROW(World{options}, FaultError);
  options = swarm_of({"crash rank=7"}, 1);
  EXPECT_THROW(World{options}, FaultError);
  options = swarm_of({"restart"}, 1);
  EXPECT_THROW(World{options}, FaultError);
  options = swarm_of({"crash"}, 1);
  options.swarm.calls = 0;
  EXPECT_THROW(World{options}, FaultError);
  EXPECT_THROW(parse_fault_family("pause"), FaultError);
  EXPECT_THROW(parse_fault_family("slow"), FaultError);
}

}  // namespace
}  // namespace rehearse::test
