// SPDX-License-Identifier: BSD-3-Clause
// Contract: among 10,000 seeds, schedules by priorities (PCT) find bugs of known depth in worlds as often as
// docs/DETERMINISM.md states, and at least as often as PCT's bound. The page also has the counts of random and
// round-robin schedules. Seeds are fixed, so all counts are exact.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <ostream>
#include <vector>

#include <gtest/gtest.h>

#include <rehearse/sim/world.h>

namespace rehearse::test {
namespace {

constexpr std::uint64_t kSeeds = 10'000;

// For each rank, the positions of its steps among all steps, from 1. A step is a store call, at which ranks may switch.
using Places = std::vector<std::vector<std::int64_t>>;

struct OrderBug {
  std::vector<int> steps;  // of each rank
  int depth;
  std::uint64_t choices;  // number of choices of the next fiber in a run
  std::function<bool(const Places&)> shows;
};

struct Run {
  Places places;
  std::uint64_t choices;
};

Run run_once(const OrderBug& bug, Schedule schedule, std::uint64_t seed, std::uint64_t steps = 0) {
  WorldOptions options;
  options.ranks = static_cast<int>(bug.steps.size());
  options.seed = seed;
  options.schedule = schedule;
  options.pct = {bug.depth, steps};
  options.preempt = true;
  Places places(bug.steps.size());
  World world(options);
  const auto report = world.run([&](RankContext& ctx) {
    const auto rank = static_cast<std::size_t>(ctx.rank());
    for (int step = 0; step < bug.steps[rank]; ++step) places[rank].push_back(ctx.store()->add("steps", 1));
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  return {std::move(places), world.decisions().decisions().size()};
}

struct Found {
  std::uint64_t pct = 0, pct_of_any_length = 0, random = 0, round_robin = 0;

  friend bool operator==(const Found&, const Found&) = default;
  friend void PrintTo(const Found& found, std::ostream* out) {
    *out << found.pct << " by priorities, " << found.pct_of_any_length << " not knowing k, " << found.random
         << " at random, " << found.round_robin << " in turn";
  }
};

Found seeds_that_find(const OrderBug& bug) {
  Found found;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const auto run = run_once(bug, Schedule::pct, seed, bug.choices);
    EXPECT_LE(run.choices, bug.choices) << "the bound is for runs of no more";
    found.pct += bug.shows(run.places) ? 1 : 0;
    found.pct_of_any_length += bug.shows(run_once(bug, Schedule::pct, seed).places) ? 1 : 0;
    found.random += bug.shows(run_once(bug, Schedule::random, seed).places) ? 1 : 0;
  }
  // With round robin, every seed gives the same run.
  found.round_robin = bug.shows(run_once(bug, Schedule::round_robin, 1).places) ? kSeeds : 0;
  return found;
}

// 1 / (n * k^(d-1)) of `seeds`, rounded up, for n ranks, k choices and depth d.
std::uint64_t bound(const OrderBug& bug, std::uint64_t choices, std::uint64_t seeds = kSeeds) {
  std::uint64_t one_in = bug.steps.size();
  for (int change = 1; change < bug.depth; ++change) one_in *= choices;
  return (seeds + one_in - 1) / one_in;
}

// If the options do not state the number of choices, each seed assumes one of 13 numbers. Returns the smallest of them
// that is not below the bug's number of choices. One seed in 13 assumes this number.
std::uint64_t assumed(const OrderBug& bug) { return std::max<std::uint64_t>(16, std::bit_ceil(bug.choices)); }

void expect_found(const OrderBug& bug, std::uint64_t bound_stated, const Found& stated) {
  const auto found = seeds_that_find(bug);
  EXPECT_EQ(bound(bug, bug.choices), bound_stated);
  EXPECT_GE(found.pct, bound_stated);
  EXPECT_GE(found.pct_of_any_length, bound(bug, assumed(bug), kSeeds / 13));
  EXPECT_EQ(found, stated);
}

// Returns whether all calls of rank `inner` lie between two consecutive calls of rank `outer`. Looks only at outer's
// calls `first` to `last`, counted from 0.
bool is_between(const Places& places, std::size_t outer, std::size_t inner, std::size_t first, std::size_t last) {
  for (std::size_t call = first; call < last; ++call) {
    if (places[outer][call] < places[inner].front() && places[inner].back() < places[outer][call + 1]) return true;
  }
  return false;
}

// The last rank ends before the first begins.
TEST(PctCapacity, Depth1_OfLongRuns) {
  const OrderBug bug{
      {25, 25, 25, 25}, 1, 104, [](const Places& places) { return places[3].back() < places[0].front(); }};
  expect_found(bug, 2'500, {4'961, 4'975, 0, 0});
}

// All calls of rank 1 come between two consecutive calls of rank 0, in the middle of rank 0's run.
TEST(PctCapacity, Depth2_OfLongRuns) {
  const OrderBug bug{{25, 25, 25, 25}, 2, 104, [](const Places& places) { return is_between(places, 0, 1, 10, 15); }};
  expect_found(bug, 25, {251, 139, 0, 0});
}

// Rank 0 stops, rank 1 begins and stops, rank 0 ends, and only then rank 1 goes on.
TEST(PctCapacity, Depth3_OfLongRuns) {
  const OrderBug bug{{15, 15}, 3, 32, [](const Places& places) {
                       for (std::size_t own = 4; own < 8; ++own) {
                         for (std::size_t other = 4; other < 8; ++other) {
                           if (places[0][own] < places[1].front() && places[1][other] < places[0][own + 1] &&
                               places[0].back() < places[1][other + 1])
                             return true;
                         }
                       }
                       return false;
                     }};
  expect_found(bug, 5, {86, 26, 1, 0});
}

// Each rank's first call comes before the other rank's second call, as if both ranks read before either writes. In a
// run as short as this, random schedules find the bug even more often than PCT.
TEST(PctCapacity, Depth2_OfAShortRun) {
  const OrderBug bug{
      {2, 2}, 2, 5, [](const Places& places) { return places[0][0] < places[1][1] && places[1][0] < places[0][1]; }};
  expect_found(bug, 1'000, {1'982, 87, 3'776, 10'000});
}

}  // namespace
}  // namespace rehearse::test
