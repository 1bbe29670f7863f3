// SPDX-License-Identifier: BSD-3-Clause
// Contract: ctx.local<T>() and ctx.label() belong to one rank and are visible to no other. Two groups of
// ctx.new_group() may not be given the same name, but two groups of ctx.new_local_group() may.
#include <numeric>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/ops/ones.h>

#include <rehearse/sim/world.h>
#include <rehearse_internal/exec/this_rank.h>

namespace rehearse {
namespace {

using exec::this_rank::rank;
using testing::ElementsAre;

class RankContexts : public testing::TestWithParam<int> {
 protected:
  int ranks() const { return GetParam(); }
  int odd_one() const { return ranks() - 1; }

  std::vector<int> all_but_the_odd_one() const {
    std::vector<int> others;
    for (int other = 0; other < odd_one(); ++other) others.push_back(other);
    return others;
  }

  WorldOptions options(std::uint64_t seed) const {
    return {.ranks = ranks(), .seed = seed, .keep_all_events = true, .explain_failures = false};
  }

  // Expects that the run ended because the odd rank called under label `odd`, and the others under label `usual`. An
  // empty text means no label.
  void expect_mismatch(const Report& report, std::uint64_t sequence, const std::string& usual, const std::string& odd) {
    EXPECT_EQ(report.verdict, Verdict::mismatch) << report.headline;
    ASSERT_EQ(report.differences.size(), 1u);
    const auto& difference = report.differences[0];
    const auto call = [](const std::string& label) {
      return "allreduce(sum, float32[3], cpu)" + (label.empty() ? "" : " label=\"" + label + '"');
    };
    EXPECT_EQ(difference.sequence, sequence);
    EXPECT_EQ(difference.first.ranks, all_but_the_odd_one());
    EXPECT_EQ(difference.first.fingerprint, call(usual));
    EXPECT_EQ(difference.second.ranks, std::vector{odd_one()});
    EXPECT_EQ(difference.second.fingerprint, call(odd));
    EXPECT_TRUE(difference.others.empty());
    ASSERT_EQ(difference.fields.size(), 1u);
    const auto quoted = [](const std::string& label) { return label.empty() ? "none" : '"' + label + '"'; };
    EXPECT_EQ(difference.fields[0].name, "label");
    EXPECT_EQ(difference.fields[0].first, quoted(usual));
    EXPECT_EQ(difference.fields[0].second, quoted(odd));
  }
};

void sum(RankContext& ctx) { ctx.group().allreduce(at::ones({3}))->wait(); }

// Each rank's object lives from its first use until the rank ends. `made` lists the ranks that have made an object, and
// `gone` the ranks whose object is gone.
struct Global {
  Global() : owner(rank()) { made.push_back(owner); }
  Global(const Global&) = delete;
  ~Global() {
    EXPECT_EQ(rank(), owner);
    gone.push_back(owner);
  }

  const int owner;
  int value = 0;
  inline static std::vector<int> made, gone;
};

TEST_P(RankContexts, Local_IsEachRanksOwnOnAllItsFibersUntilItEnds) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    std::set<const Global*> seen;
    World world(options(seed));
    // The second run starts afresh.
    for (int run = 0; run < 2; ++run) {
      Global::made.clear();
      Global::gone.clear();
      seen.clear();
      const auto report = world.run([&](RankContext& ctx) {
        auto& mine = ctx.local<Global>();
        EXPECT_EQ(mine.owner, ctx.rank());
        EXPECT_EQ(mine.value, 0);
        mine.value = 10 * ctx.rank();
        seen.insert(&mine);
        sum(ctx);
        std::thread helper([&] {
          EXPECT_NE(exec::this_rank::fiber_of_rank(), 0u);
          exec::this_rank::yield();
          EXPECT_EQ(&ctx.local<Global>(), &mine);
          ++ctx.local<Global>().value;
        });
        helper.join();
        sum(ctx);
        EXPECT_EQ(&ctx.local<Global>(), &mine);
        EXPECT_EQ(mine.value, 10 * ctx.rank() + 1);
        EXPECT_TRUE(Global::gone.empty());
        sum(ctx);
      });
      EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
      EXPECT_EQ(seen.size(), static_cast<std::size_t>(ranks()));
      EXPECT_EQ(Global::made.size(), static_cast<std::size_t>(ranks()));
      EXPECT_EQ(std::set(Global::gone.begin(), Global::gone.end()).size(), static_cast<std::size_t>(ranks()));
    }
  }
}

TEST_P(RankContexts, LocalMadeByAHelper_IsTheRanksToo) {
  struct Counter {
    int value = 0;
  };
  int finished = 0;
  for (const std::uint64_t seed : {1, 2, 3}) {
    const auto report = World(options(seed)).run([&](RankContext& ctx) {
      std::thread([&] {
        exec::this_rank::yield();
        ctx.local<Counter>().value = ctx.rank() + 1;
      }).join();
      sum(ctx);
      EXPECT_EQ(ctx.local<Counter>().value, ctx.rank() + 1);
      EXPECT_EQ(ctx.local<int>(), 0);  // another type is another object
      ++finished;
    });
    EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  }
  EXPECT_EQ(finished, 3 * ranks());
}

TEST_P(RankContexts, LocalsOfAWorldThatFails_AreGoneInOrderOfRank) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    Global::made.clear();
    Global::gone.clear();
    const auto report = World(options(seed)).run([&](RankContext& ctx) {
      ctx.local<Global>();
      ctx.group().barrier()->wait();
      if (ctx.rank() == odd_one()) {
        exec::this_rank::sleep_for(std::chrono::seconds(1));  // the others are blocked by then
        throw std::runtime_error("boom");
      }
      ctx.group().barrier()->wait();
    });
    EXPECT_EQ(report.verdict, Verdict::rank_failed);
    EXPECT_EQ(Global::made.size(), static_cast<std::size_t>(ranks()));
    auto in_order = all_but_the_odd_one();
    in_order.insert(in_order.begin(), odd_one());  // it ends by itself, then the others are unwound
    EXPECT_EQ(Global::gone, in_order);
  }
}

TEST_P(RankContexts, DifferentLabels_AreAMismatchThatNamesBoth) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    const auto report = World(options(seed)).run([&](RankContext& ctx) {
      sum(ctx);
      const auto label = ctx.label(ctx.rank() == odd_one() ? "decoder.weight" : "encoder.weight");
      sum(ctx);
    });
    expect_mismatch(report, 2, "encoder.weight", "decoder.weight");
  }
}

TEST_P(RankContexts, LabelOnOneRankOnly_IsAMismatch) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    const auto report = World(options(seed)).run([&](RankContext& ctx) {
      if (ctx.rank() != odd_one()) return sum(ctx);
      const auto label = ctx.label("mine");
      sum(ctx);
    });
    expect_mismatch(report, 1, "", "mine");
  }
}

TEST_P(RankContexts, NestedLabels_TheInnermostCountsUntilItsScopeEnds) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    World world(options(seed));
    const auto report = world.run([](RankContext& ctx) {
      sum(ctx);
      {
        const auto outer = ctx.label("layer1");
        sum(ctx);
        {
          const auto inner = ctx.label("weight");
          sum(ctx);
        }
        sum(ctx);
        const auto same_again = ctx.label("weight");
        sum(ctx);
      }
      sum(ctx);
    });
    EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
    for (int of = 0; of < ranks(); ++of) {
      std::vector<std::string> labels;
      for (const auto& event : world.events().of_rank(of)) labels.push_back(world.events().signature(event).label);
      EXPECT_THAT(labels, ElementsAre("", "layer1", "weight", "layer1", "weight", "")) << "rank " << of;
    }
  }
}

// Only the innermost labels are compared. Each rank may nest labels around them as it likes.
TEST_P(RankContexts, ScopeThatOneRankHasNotLeft_ShowsInItsNextCall) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    const auto report = World(options(seed)).run([&](RankContext& ctx) {
      std::optional<RankContext::Label> outer, inner;
      if (ctx.rank() != odd_one()) outer.emplace(ctx, "layer1");
      inner.emplace(ctx, "weight");
      sum(ctx);
      if (ctx.rank() != odd_one()) inner.reset();
      sum(ctx);
    });
    expect_mismatch(report, 2, "layer1", "weight");
  }
}

// Two threads of each rank call on a group of their own. Each has labels of its own.
TEST_P(RankContexts, Labels_AreOfTheThreadThatMakesThem) {
  for (const std::uint64_t seed : {1, 2, 3, 4, 5, 6, 7, 8}) {
    const auto report = World(options(seed)).run([](RankContext& ctx) {
      std::vector<int> all(static_cast<std::size_t>(ctx.size()));
      std::iota(all.begin(), all.end(), 0);
      const Group saves = ctx.new_group(all, "saves");
      std::thread saver([&] {
        for (int step = 0; step < 3; ++step) {
          const auto name = ctx.label("save");
          saves.allreduce(at::ones({3}))->wait();
        }
      });
      sum(ctx);
      {
        const auto name = ctx.label("train");
        sum(ctx);
      }
      sum(ctx);
      saver.join();
    });
    EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, RankContexts, testing::Range(2, 9));

TEST(NewGroup, OfANameThatAnotherOneHas_IsRefused) {
  const auto report = World({.ranks = 4}).run([](RankContext& ctx) {
    ctx.new_group({0, 1}, "pair");
    ctx.new_group({2, 3}, "pair");
  });
  EXPECT_EQ(report.verdict, Verdict::rank_failed);
  EXPECT_THAT(report.headline, testing::EndsWith(": new_group: there is a group of the name \"pair\" already"));
}

// A rank's n-th call of new_local_group() with the same ranks and the same name gets the n-th group of these ranks and
// this name, even if groups with other ranks have that name, too.
TEST(LocalGroups, OfOneName_AreOneAfterTheOther) {
  World world({.ranks = 3});
  const auto report = world.run([](RankContext& ctx) {
    const auto reduce = [](const Group& group) {
      auto ones = at::ones({1});
      group.allreduce(ones)->wait();
      return ones.item<int>();
    };
    const auto first = ctx.new_local_group({0, 1, 2}), second = ctx.new_local_group({0, 1, 2});
    EXPECT_EQ(reduce(second), 3);
    EXPECT_EQ(reduce(first), 3);
    EXPECT_NE(first->getGroupName(), second->getGroupName());
    for (int round = 0; round < 2; ++round) {
      if (ctx.rank() < 2) {
        EXPECT_EQ(reduce(ctx.new_local_group({0, 1}, "pair")), 2);
      }
      if (ctx.rank() > 0) {
        EXPECT_EQ(reduce(ctx.new_local_group({1, 2}, "pair")), 2);
      }
    }
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
}

}  // namespace
}  // namespace rehearse
