// SPDX-License-Identifier: BSD-3-Clause
// Contract: an oracle that asks learns what the next steps of ranks touch. The same thing has the same number on all
// ranks, and the order of two steps matters if one of them writes.
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <rehearse/sim/world.h>

namespace rehearse_test {
namespace {

using rehearse::Access;
using rehearse::ChoiceKind;
using rehearse::RankContext;

// Takes the first candidate, and collects what the candidates' next steps touch.
class Collector final : public rehearse::Oracle {
 public:
  bool begin(const rehearse::FiberFacts& facts) override {
    facts_ = &facts;
    return true;
  }
  std::uint32_t choose(ChoiceKind kind, std::span<const std::uint32_t> candidates,
                       std::span<const std::uint32_t>) override {
    for (const auto fiber : candidates) {
      if (kind != ChoiceKind::next_fiber) break;
      const Access access = facts_->next_access(fiber);
      if (access.object != 0) seen[access.object] |= access.writes;
    }
    return 0;
  }

  std::map<std::uint64_t, bool> seen;  // by object: whether a step writes it

 private:
  const rehearse::FiberFacts* facts_ = nullptr;
};

std::map<std::uint64_t, bool> accesses(int ranks, const rehearse::World::Body& body) {
  Collector collector;
  rehearse::World world({.ranks = ranks, .preempt = true, .explain_failures = false});
  world.use_oracle(collector);
  const auto report = world.run(body);
  EXPECT_EQ(report.verdict, rehearse::Verdict::ok) << report.headline;
  return collector.seen;
}

void set(RankContext& ctx, const std::string& key) { ctx.store()->set(key, std::vector<std::uint8_t>{1}); }

TEST(Accesses, OfAKey_AreThoseOfOneThing) {
  const auto seen = accesses(3, [](RankContext& ctx) { set(ctx, "a"); });
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_TRUE(seen.begin()->second);
  EXPECT_EQ(accesses(3, [](RankContext& ctx) { set(ctx, ctx.rank() == 0 ? "a" : "b"); }).size(), 2u);
  const auto looks = accesses(3, [](RankContext& ctx) { ctx.store()->check({"a"}); });
  ASSERT_EQ(looks.size(), 1u);
  EXPECT_FALSE(looks.begin()->second);
  EXPECT_EQ(looks.begin()->first, seen.begin()->first);
}

TEST(Accesses, OfAFile_AreThoseOfItsPath) {
  const auto seen = accesses(2, [](RankContext& ctx) {
    const auto folder = ctx.shared_folder();
    static_cast<void>(std::filesystem::exists(ctx.rank() == 0 ? folder / "x" : folder / "y" / ".." / "x"));
  });
  EXPECT_EQ(seen.size(), 1u);
}

TEST(Accesses, OfLocks_AreTheRanks) {
  const auto seen = accesses(2, [](RankContext&) {
    std::mutex first, second;
    const std::lock_guard own(first), other(second);
  });
  EXPECT_EQ(seen.size(), 2u);
}

// A receive that names its sender gets the same message in any order.
TEST(Accesses, OfMessages_AreTheReceivers) {
  const auto run = [](bool any) {
    return accesses(3, [any](RankContext& ctx) {
      auto tensor = at::ones({2});
      std::vector<at::Tensor> receiving{tensor};
      if (ctx.rank() > 0) return static_cast<void>(ctx.group().send(tensor, 0)->wait());
      for (int source = 1; source < ctx.size(); ++source)
        any ? ctx.group()->recvAnysource(receiving, 0)->wait() : ctx.group().recv(tensor, source)->wait();
    });
  };
  for (const bool any : {false, true}) {
    const auto seen = run(any);
    ASSERT_EQ(seen.size(), 1u) << any;
    EXPECT_TRUE(seen.begin()->second);
  }
}

}  // namespace
}  // namespace rehearse_test
