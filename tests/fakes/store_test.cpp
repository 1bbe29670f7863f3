// SPDX-License-Identifier: BSD-3-Clause
// Contract: a world's store behaves like c10d's own stores. Blocking calls suspend the rank, and timeouts are in
// virtual time.
#include <functional>
#include <set>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <rehearse_internal/exec/this_rank.h>

#include "store_fixture.h"

namespace rehearse::fakes::testing {
namespace {

using namespace std::chrono_literals;
using exec::Ending;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(StoreTest, OutsideOfRanks_EverythingButWaitingWorks) {
  FakeStore store(shared);
  store.set("a", std::string("1"));
  EXPECT_EQ(store.get_to_str("a"), "1");
  EXPECT_EQ(store.add("n", 5), 5);
  EXPECT_EQ(store.add("n", -2), 3);
  EXPECT_EQ(store.get_to_str("n"), "3");
  EXPECT_EQ(store.add("zero", 0), 0);
  EXPECT_TRUE(store.check({"a", "n", "zero"}));
  EXPECT_FALSE(store.check({"a", "b"}));
  EXPECT_EQ(store.getNumKeys(), 3);
  EXPECT_TRUE(store.deleteKey("a"));
  EXPECT_FALSE(store.deleteKey("a"));
  EXPECT_EQ(store.getNumKeys(), 2);
  store.wait({"n", "zero"});
  EXPECT_THROW(store.get("a"), c10::DistStoreError);
  EXPECT_THROW(store.wait({"n", "a"}, 5s), c10::DistStoreError);
}

TEST_F(StoreTest, CompareSet_AsHashStore) {
  FakeStore store(shared);
  EXPECT_EQ(store.compareSet("k", std::string("x"), std::string("y")), "x");  // key missing: returns the expected value
  EXPECT_FALSE(store.check({"k"}));
  EXPECT_EQ(store.compareSet("k", std::string(), std::string("y")), "y");  // key missing, nothing expected: sets it
  EXPECT_EQ(store.compareSet("k", std::string("x"), std::string("z")), "y");
  EXPECT_EQ(store.compareSet("k", std::string("y"), std::string("z")), "z");
  EXPECT_EQ(store.get_to_str("k"), "z");
}

TEST_F(StoreTest, Get_WaitsForAnotherRank) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    shared = std::make_shared<StoreState>();
    std::vector<std::string> got(8);
    const auto outcome = run(
        8,
        [&](int rank, FakeStore& store) {
          if (rank == 5) store.set("id", std::string("from 5"));
          got[rank] = store.get_to_str("id");
        },
        seed);
    EXPECT_EQ(outcome.ending, Ending::all_returned);
    EXPECT_EQ(std::set<std::string>(got.begin(), got.end()), std::set<std::string>{"from 5"});
    EXPECT_EQ(outcome.end_time, kTimeZero);
  }
}

// c10d's stores have barrier() since LibTorch 2.12.
template <class Store>
void barrier(Store& store, int ranks) {
  if constexpr (requires { store.barrier("b", ranks); }) {
    store.barrier("b", ranks);
  } else {
    if (store.add("b", 1) == ranks) store.set("all", std::string());
    store.wait({"all"});
  }
}

TEST_F(StoreTest, Barrier_WaitsForAll) {
  const auto outcome = run(3, [](int rank, FakeStore& store) {
    exec::this_rank::sleep_for(rank * 10ms);
    barrier(store, 3);
    EXPECT_EQ(exec::this_rank::now(), kTimeZero + 20ms);
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

TEST_F(StoreTest, Wait_ForAllKeysInAnyOrder) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    shared = std::make_shared<StoreState>();
    const auto outcome = run(
        4,
        [&](int rank, FakeStore& store) {
          if (rank == 0) {
            store.wait({"1", "2", "3"});
            EXPECT_TRUE(store.check({"1", "2", "3"}));
          } else {
            exec::this_rank::sleep_for(1ms * ((rank * 2) % 3));
            store.add(std::to_string(rank), 1);
          }
        },
        seed);
    EXPECT_EQ(outcome.ending, Ending::all_returned);
  }
}

TEST_F(StoreTest, Timeout_IsVirtualAndNamesWhatIsMissing) {
  std::string message;
  VirtualTime when{};
  const auto outcome = run(2, [&](int rank, FakeStore& store) {
    if (rank == 1) return store.set("there", std::string("x"));
    try {
      store.wait({"there", "never", "nor this"}, 1500ms);
    } catch (const c10::DistStoreError& error) {
      message = error.what_without_backtrace();
      when = exec::this_rank::now();
    }
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(message, "wait timeout after 1500ms, keys: there, never, nor this (no rank has set: never, nor this)");
  EXPECT_EQ(when.time_since_epoch(), 1500ms);
}

TEST_F(StoreTest, Timeout_DefaultAndSet) {
  std::vector<VirtualDuration> ended(2);
  run(2, [&](int rank, FakeStore& store) {
    EXPECT_EQ(store.getTimeout(), c10d::Store::kDefaultTimeout);
    if (rank == 1) store.setTimeout(2s);
    EXPECT_THROW(store.get("never"), c10::DistStoreError);
    ended[rank] = exec::this_rank::now().time_since_epoch();
  });
  EXPECT_THAT(ended, ElementsAre(300s, 2s));
}

TEST_F(StoreTest, NoTimeout_IsADeadlockThatNamesTheKey) {
  const auto outcome = run(2, [&](int rank, FakeStore& store) {
    if (rank == 0) store.wait({"x"}, c10d::Store::kNoTimeout);
    if (rank == 1) store.wait({"x", "y"}, c10d::Store::kNoTimeout);
  });
  EXPECT_EQ(outcome.ending, Ending::deadlock);
  ASSERT_EQ(outcome.blocked.size(), 2u);
  EXPECT_EQ(outcome.blocked[0].waits_on, "store wait for key \"x\"");
  EXPECT_EQ(outcome.blocked[1].waits_on, "store wait for keys \"x\", \"y\"");
}

// If a key comes and goes before the waiter runs, the waiter keeps waiting.
TEST_F(StoreTest, DeletedBeforeTheWaiterRuns_WaitsOn) {
  const auto outcome = run(2, [&](int rank, FakeStore& store) {
    if (rank == 0) {
      EXPECT_EQ(store.get_to_str("k"), "second");
    } else {
      exec::this_rank::sleep_for(1ms);
      store.set("k", std::string("first"));
      store.deleteKey("k");
      exec::this_rank::sleep_for(1ms);
      store.set("k", std::string("second"));
    }
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

TEST_F(StoreTest, Polling_LetsOthersRun) {
  const std::vector<std::function<bool(FakeStore&)>> done_when{
      [](FakeStore& store) { return store.check({"flag"}); },
      [](FakeStore& store) { return store.add("count", 0) == 1; },
      [](FakeStore& store) { return store.get_to_str("state") == "set"; },
      [](FakeStore& store) { return store.getNumKeys() == 3; },
      [](FakeStore& store) { return store.compareSet("state", std::string("set"), std::string("set")) == "set"; },
  };
  for (std::size_t way = 0; way < done_when.size(); ++way) {
    shared = std::make_shared<StoreState>();
    FakeStore(shared).set("state", std::string("unset"));
    const auto outcome = run(3, [&](int rank, FakeStore& store) {
      if (rank > 0) {
        while (!done_when[way](store)) {
        }
        return;
      }
      exec::this_rank::sleep_for(1s);
      store.set("state", std::string("set"));
      store.add("count", 1);
      store.set("flag", std::string("x"));
    });
    EXPECT_EQ(outcome.ending, Ending::all_returned) << "way " << way;
    EXPECT_EQ(outcome.end_time.time_since_epoch(), 1s) << "way " << way;
  }
}

TEST_F(StoreTest, PollingForAnAbsentKey_IsALivelock) {
  const auto outcome = run(2, [&](int rank, FakeStore& store) {
    while (rank == 0 && !store.check({"never"})) {
    }
  });
  EXPECT_EQ(outcome.ending, Ending::livelock);
}

// Reading many keys is not polling, so it must not advance time.
// After an event at another time than the beginning, too.
TEST_F(StoreTest, YieldsBesideAHeartbeat_LetTimePass) {
  bool over = false;
  const auto outcome = run(2, [&](int rank, FakeStore& store) {
    if (rank == 0) {
      exec::this_rank::sleep_for(5ms);
      exec::this_rank::sleep_for(3s);
      over = true;
    }
    while (!over) {
      store.set("alive", bytes("yes"));
      exec::this_rank::poll();
    }
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_GE(outcome.end_time.time_since_epoch(), 3005ms);
}

// The ranks pause between their looks, so at the end most of them sleep.
TEST_F(StoreTest, PollingBesideAHeartbeatThatNobodyReads_IsALivelock) {
  options.idle_timed_polls_max = 1'000;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const auto outcome = run(
        4,
        [&](int rank, FakeStore& store) {
          while (!store.check({"go"})) {
            if (rank == 0) store.set("alive", bytes("yes"));
            exec::this_rank::sleep_for((rank + 1) * 1ms);
          }
        },
        seed);
    EXPECT_EQ(outcome.ending, Ending::livelock);
    ASSERT_EQ(outcome.blocked.size(), 4u);
    for (const auto& fiber : outcome.blocked) {
      EXPECT_EQ(fiber.waits_on, "store check of key \"go\", polled without a change") << fiber.rank;
      EXPECT_TRUE(fiber.polls) << fiber.rank;
    }
  }
}

TEST_F(StoreTest, PollingBesideAHeartbeatThatARankReads_GoesOn) {
  options.idle_timed_polls_max = 1'000;
  const auto outcome = run(3, [&](int rank, FakeStore& store) {
    for (int step = 0; rank == 1 && step < 2'000; ++step) {
      store.get("alive");
      exec::this_rank::sleep_for(1ms);
    }
    if (rank == 1) store.set("go", bytes("now"));
    while (!store.check({"go"})) {
      if (rank == 0) store.set("alive", bytes("yes"));
      exec::this_rank::sleep_for(1ms);
    }
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

TEST_F(StoreTest, ReadingEveryKeyOnce_LetsNoTimePass) {
  for (int i = 0; i < 50; ++i) FakeStore(shared).set(std::to_string(i), std::string("x"));
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    int read = 0;
    const auto outcome = run(
        2,
        [&](int rank, FakeStore& store) {
          if (rank == 1) return exec::this_rank::sleep_for(1s);
          for (; read < 50; ++read) EXPECT_EQ(store.get_to_str(std::to_string(read)), "x");
          EXPECT_EQ(exec::this_rank::now(), kTimeZero);
        },
        seed);
    EXPECT_EQ(outcome.ending, Ending::all_returned);
    EXPECT_EQ(read, 50);
    EXPECT_EQ(outcome.ended_at, (std::vector{kTimeZero, kTimeZero + 1s}));
  }
}

TEST_F(StoreTest, PrefixStore_AndClone) {
  const auto outcome = run(4, [&](int rank, FakeStore& store) {
    const auto prefixed = c10::make_intrusive<c10d::PrefixStore>("group", store.clone());
    prefixed->set(std::to_string(rank), std::vector<std::uint8_t>(1, static_cast<std::uint8_t>(rank)));
    for (int r = 0; r < 4; ++r) EXPECT_EQ(prefixed->get(std::to_string(r))[0], r);
    store.wait({"group/3"});
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(FakeStore(shared).getNumKeys(), 4);
}

TEST_F(StoreTest, WorldEndsDuringAWait_WaitersUnwind) {
  int unwound = 0;
  const auto outcome = run(3, [&](int rank, FakeStore& store) {
    if (rank == 2) {
      exec::this_rank::sleep_for(1ms);
      throw std::runtime_error("boom");
    }
    try {
      store.get("never");
    } catch (const RankAborted&) {
      ++unwound;
      throw;
    }
  });
  EXPECT_EQ(outcome.ending, Ending::rank_failed);
  EXPECT_EQ(unwound, 2);
  EXPECT_EQ(outcome.blocked.size(), 2u);
  EXPECT_EQ(FakeStore(shared).getNumKeys(), 0);
}

TEST_F(StoreTest, Barrier_ByCounter) {
  const auto outcome = run(64, [&](int, FakeStore& store) {
    for (int round = 0; round < 3; ++round) {
      const std::string key = "round" + std::to_string(round);
      if (store.add(key, 1) == 64) store.set(key + "/done", bytes("x"));
      store.wait({key + "/done"});
      EXPECT_EQ(store.add(key, 0), 64);
    }
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

}  // namespace
}  // namespace rehearse::fakes::testing
