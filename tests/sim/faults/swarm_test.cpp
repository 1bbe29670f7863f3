// SPDX-License-Identifier: BSD-3-Clause
// Contract: a swarm draws faults by choices of the Oracle, only from the given families, and within the swarm's bounds.
// If a family states ranks, a call or a time, its faults keep to them.
#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <vector>

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

// The faults of 100 runs, and the reports' lines about them.
struct Drawn {
  std::vector<Fault> faults;
  std::vector<FaultLine> lines;
};

Drawn drawn_by(const std::vector<std::string>& families, VirtualDuration within = {}) {
  Drawn drawn;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    auto options = swarm_of(families, seed);
    options.swarm.within = within;
    const auto report = run(options);
    EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
    EXPECT_LE(report.faults.size(), 2u);
    for (const auto& line : report.faults) {
      EXPECT_TRUE(line.optional);
      drawn.faults.push_back(parse_fault(line.fault));
      drawn.lines.push_back(line);
      EXPECT_EQ(to_string(drawn.faults.back()), line.fault);
    }
  }
  return drawn;
}

TEST(Swarm, EachFamilyTakesPartInHalfOfTheRuns) {
  const auto drawn = drawn_by({"pause for=1ms", "slow factor=2"});
  int pauses = 0, slows = 0;
  std::set<int> ranks;
  std::set<std::string> texts;
  for (std::size_t i = 0; i < drawn.faults.size(); ++i) {
    const auto& fault = drawn.faults[i];
    ASSERT_EQ(fault.ranks.size(), 1u);
    ranks.insert(fault.ranks.front());
    if (fault.verb == Fault::Verb::slow) ++slows;
    if (fault.verb != Fault::Verb::pause) continue;
    ++pauses;
    for (const auto& point : {fault.call, fault.at}) {
      if (!point) continue;
      EXPECT_LE(point->number, 20u);
      EXPECT_EQ(drawn.lines[i].times, 1u) << "each rank makes 20 calls: " << drawn.lines[i].why_not;
    }
    texts.insert(drawn.lines[i].fault);
  }
  EXPECT_GT(std::min(pauses, slows), 30);
  EXPECT_LT(std::max(pauses, slows), 70);
  EXPECT_EQ(ranks, (std::set<int>{0, 1, 2, 3}));
  EXPECT_GT(texts.size(), 20u);
}

// A swarm chooses one of four conditions for a fault: the number of the call among the rank's calls, the number of the
// call in its group, a probability for each call, or a time. It chooses times only if SwarmOptions::within bounds them.
TEST(Swarm, DrawsWhen_OfEachKind) {
  const auto within = std::chrono::microseconds(200);
  int calls = 0, numbers = 0, chances = 0, times = 0;
  for (const auto& fault : drawn_by({"pause for=1ms", "partition for=10us"}, within).faults) {
    calls += fault.call ? 1 : 0;
    numbers += fault.at ? 1 : 0;
    chances += fault.p < 1 ? 1 : 0;
    times += fault.after ? 1 : 0;
    EXPECT_EQ((fault.call ? 1 : 0) + (fault.at ? 1 : 0) + (fault.p < 1 ? 1 : 0) + (fault.after ? 1 : 0), 1);
    EXPECT_LT(fault.after.value_or(VirtualDuration::zero()), within);
  }
  EXPECT_GT(calls, 10);
  EXPECT_GT(numbers, 10);
  EXPECT_GT(chances, 10);
  EXPECT_GT(times, 10);
}

TEST(Swarm, WithoutABound_DrawsNoTimes) {
  for (const auto& fault : drawn_by({"pause for=1ms"}).faults) EXPECT_FALSE(fault.after);
}

// A key may get few calls. So the fault takes the first call, each call with a probability, or the calls after a time.
TEST(Swarm, FaultsOfTheStore_AreAtNoNumber) {
  const auto drawn = drawn_by({"stale_key key=epoch"}, std::chrono::milliseconds(1));
  EXPECT_GT(drawn.faults.size(), 30u);
  int firsts = 0, chances = 0, times = 0;
  for (const auto& fault : drawn.faults) {
    EXPECT_FALSE(fault.at || fault.call);
    ++(fault.p < 1 ? chances : fault.after ? times : firsts);
  }
  EXPECT_GT(std::min({firsts, chances, times}), 5);
}

TEST(Swarm, Restarts_ComeAtATime) {
  int restarts = 0;
  std::set<VirtualDuration> times;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    auto options = swarm_of({"restart"}, seed);
    options.swarm.within = std::chrono::milliseconds(64);
    const auto report = run(options, [](RankContext&) {});
    EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
    for (const auto& line : report.faults) {
      ++restarts;
      const auto after = parse_fault(line.fault).after;
      ASSERT_TRUE(after);
      EXPECT_EQ(*after % std::chrono::milliseconds(1), VirtualDuration(0)) << "one of 64 times";
      times.insert(*after);
    }
  }
  EXPECT_GT(restarts, 10);
  EXPECT_GT(times.size(), 8u);
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
  options.swarm.calls = 1;
  options.swarm.within = VirtualDuration(-1);
  EXPECT_THROW(World{options}, FaultError);
  options.swarm.within = VirtualDuration::max();
  EXPECT_THROW(World{options}, FaultError);
  EXPECT_THROW(parse_fault_family("pause"), FaultError);
  EXPECT_THROW(parse_fault_family("slow"), FaultError);
}

}  // namespace
}  // namespace rehearse::test
