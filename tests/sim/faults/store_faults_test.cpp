// SPDX-License-Identifier: BSD-3-Clause
// Contract: a key of the store vanishes, or a get returns the previous value, at the calls or the time that the fault
// says, and nowhere else.
#include <chrono>
#include <string>

#include <rehearse_internal/exec/this_rank.h>

#include "faulty_world.h"

namespace rehearse::test {
namespace {

using std::chrono::milliseconds;

void epochs(RankContext& ctx) {
  for (int epoch = 1; epoch <= 3; ++epoch) {
    if (ctx.rank() == 0) ctx.store()->set("epoch", std::to_string(epoch));
    ctx.group().barrier()->wait();
    const auto read = ctx.store()->get_to_str("epoch");
    ctx.expect(read == std::to_string(epoch), "the epoch is the last one", read);
    ctx.group().barrier()->wait();
  }
}

TEST(StaleKey, BringsTheFormerValueOnce) {
  EXPECT_EQ(run(std::vector<std::string>{}, epochs).verdict, Verdict::ok);
  const auto report = run({"stale_key rank=2 key=epoch call=get#3"}, epochs);
  EXPECT_EQ(report.verdict, Verdict::check_failed);
  EXPECT_NE(report.headline.find("rank 2"), std::string::npos) << report.headline;
  EXPECT_EQ(fired(report), R"(rank 2 in get of key "epoch")");
}

// The first value has no predecessor, so the fault takes the get of the second value.
TEST(StaleKey, WithoutACall_IsTheFirstGetThatHasOne) {
  int stale = 0;
  const auto body = [&](RankContext& ctx) {
    auto store = ctx.store()->clone();
    if (ctx.rank() != 1) return;
    for (const auto* const value : {"one", "two", "three"}) {
      store->set("other", value);
      store->set("key", value);
      const auto read = store->get_to_str("key");
      EXPECT_EQ(store->get_to_str("other"), value);
      if (read != value) {
        EXPECT_EQ(read, "one");
      }
      stale += read != value ? 1 : 0;
    }
  };
  EXPECT_EQ(run({"stale_key key=key"}, body).verdict, Verdict::ok);
  EXPECT_EQ(stale, 2) << "once in each of two runs";
}

// The values from before the deletion are gone.
TEST(StaleKey, OfADeletedKey_StartsAnew) {
  const auto report = run({"stale_key rank=1 key=key"}, [](RankContext& ctx) {
    if (ctx.rank() != 1) return;
    for (const auto* const value : {"one", "two"}) ctx.store()->set("key", value);
    EXPECT_TRUE(ctx.store()->deleteKey("key"));
    ctx.store()->set("key", "three");
    EXPECT_EQ(ctx.store()->get_to_str("key"), "three");
    ctx.store()->set("key", "four");
    EXPECT_EQ(ctx.store()->get_to_str("key"), "three") << "the fault's";
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
}

TEST(StaleKey, OfAKeyThatNeverChanges_DidNotFire) {
  const auto report = run({"stale_key key=ready"}, [](RankContext& ctx) {
    if (ctx.rank() == 0) ctx.store()->set("ready", "yes");
    EXPECT_EQ(ctx.store()->get_to_str("ready"), "yes");
  });
  EXPECT_EQ(report.verdict, Verdict::fault_not_fired);
  EXPECT_EQ(report.headline, "stale_key key=ready: get of key \"ready\" came when the key had no earlier value");
}

// The reason does not mention ranks that never get the key, unless the fault names them.
TEST(StaleKey, OfAKeyThatNeverChanges_NamesTheRanksThatReadIt) {
  const auto body = [](RankContext& ctx) {
    if (ctx.rank() == 1) ctx.store()->set("ready", "yes");
    if (ctx.rank() == 1) ctx.store()->get("ready");
    if (ctx.rank() == 2) ctx.store()->check({"steady"});
  };
  const std::string why = "get of key \"ready\" came when the key had no earlier value";
  EXPECT_EQ(run({"stale_key key=ready"}, body).headline, "stale_key key=ready: " + why);
  EXPECT_EQ(run({"stale_key rank=1 call=get#1 key=ready"}, body).headline,
            "stale_key rank=1 call=get#1 key=ready: " + why);
  EXPECT_EQ(run({"stale_key rank=2 key=ready"}, body).headline,
            "stale_key rank=2 key=ready: no call fitted; rank 2 made 1 call of the store");
  EXPECT_EQ(run({"stale_key rank=1 call=get#2 key=ready"}, body).headline,
            "stale_key rank=1 call=get#2 key=ready: no call fitted; rank 1 made 2 calls of the store");
}

TEST(StaleKey, IsKnownBehindPrefixes) {
  const auto body = [](RankContext& ctx) {
    if (ctx.rank() != 0) return;
    auto store = ctx.group()->getStore();
    store->set("rank_0", std::vector<std::uint8_t>{1});
    store->set("rank_0", std::vector<std::uint8_t>{2});
    EXPECT_EQ(store->multiGet({"rank_0"}), (std::vector<std::vector<std::uint8_t>>{{1}}));
    EXPECT_EQ(store->multiGet({"rank_0"}), (std::vector<std::vector<std::uint8_t>>{{2}}));
  };
  EXPECT_EQ(run({"stale_key key=rank_* call=multiGet#1"}, body).verdict, Verdict::ok);
}

TEST(LoseKey, AfterTheSet_LeavesReadersWaiting) {
  const auto report = run({"lose_key rank=0 key=epoch call=set#2"}, epochs);
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  EXPECT_NE(report.headline.find("store wait for key \"epoch\""), std::string::npos) << report.headline;
  EXPECT_EQ(fired(report), R"(rank 0 in set of key "epoch")");
}

// The schedule decides which get comes first. The first get triggers the fault, once per world.
TEST(LoseKey, BeforeAGet_OncePerWorld) {
  const auto body = [](RankContext& ctx) {
    if (ctx.rank() == 0) ctx.store()->set("key", "value");
    ctx.group().barrier()->wait();
    ctx.store()->setTimeout(milliseconds(5));
    EXPECT_THROW(ctx.store()->get("key"), c10::DistStoreError);
    ctx.group().barrier()->wait();
    if (ctx.rank() == 0) ctx.store()->set("key", "again");
    EXPECT_EQ(ctx.store()->get_to_str("key"), "again");
  };
  const auto report = run({"lose_key key=key call=get"}, body);
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(report.faults[0].times, 1u);
}

TEST(LoseKey, AtATime_NeedsNoCall) {
  const auto body = [](RankContext& ctx) {
    if (ctx.rank() == 0) ctx.store()->set("a/1", "x");
    if (ctx.rank() == 0) ctx.store()->set("a/2", "x");
    if (ctx.rank() == 0) ctx.store()->set("b", "x");
    exec::this_rank::sleep_for(milliseconds(2));
    EXPECT_EQ(ctx.store()->listKeys(), std::vector<std::string>{"b"});
    exec::this_rank::sleep_for(milliseconds(2));
  };
  const auto report = run({"lose_key key=a/* after=1ms", "lose_key key=a/* after=3ms optional=true"}, body);
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(report.faults[0].fired.at(0).at, VirtualTime(milliseconds(1)));
  EXPECT_EQ(report.faults[1].why_not, "the store had no such key at 3 ms");
}

TEST(LoseKey, Counter_BeginsAnew) {
  const auto body = [](RankContext& ctx) {
    if (ctx.rank() != 0) return;
    EXPECT_EQ(ctx.store()->add("count", 1), 1);
    EXPECT_EQ(ctx.store()->add("count", 1), 2);
    EXPECT_EQ(ctx.store()->add("count", 1), 1);
  };
  EXPECT_EQ(run({"lose_key key=count call=add#2"}, body).verdict, Verdict::ok);
}

}  // namespace
}  // namespace rehearse::test
