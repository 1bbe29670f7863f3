// SPDX-License-Identifier: BSD-3-Clause
// Contract: queues, appends and calls on several keys of a world's store, between ranks.
#include <set>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <rehearse_internal/exec/this_rank.h>

#include "store_fixture.h"

namespace rehearse::fakes::testing {
namespace {

using namespace std::chrono_literals;
using exec::Ending;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class StoreQueues : public StoreTest {};

// Each element goes to exactly one rank. A rank that finds none keeps waiting.
TEST_F(StoreQueues, Pop_BlocksUntilThereIsOneForEach) {
  std::set<std::vector<std::string>> ways;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    shared = std::make_shared<StoreState>();
    std::vector<std::string> got(4);
    const auto outcome = run(
        4,
        [&](int rank, FakeStore& store) {
          if (rank > 0) {
            const auto element = store.queuePop("q", true);
            got[rank].assign(element.begin(), element.end());
            return;
          }
          for (const char* element : {"x", "y", "z"}) {
            exec::this_rank::sleep_for(1ms);
            store.queuePush("q", bytes(element));
          }
        },
        seed);
    EXPECT_EQ(outcome.ending, Ending::all_returned);
    EXPECT_EQ(std::set<std::string>(got.begin() + 1, got.end()), (std::set<std::string>{"x", "y", "z"}));
    EXPECT_EQ(outcome.end_time.time_since_epoch(), 3ms);
    EXPECT_EQ(FakeStore(shared).queueLen("q"), 0);
    ways.insert(got);
  }
  EXPECT_GT(ways.size(), 1u);  // the schedule decides which rank gets which element
}

TEST_F(StoreQueues, FirstInFirstOut) {
  FakeStore store(shared);
  for (const char* element : {"1", "", "3"}) store.queuePush("q", bytes(element));
  EXPECT_EQ(store.queueLen("q"), 3);
  EXPECT_THAT(store.listKeys(), IsEmpty());
  EXPECT_EQ(store.queuePop("q", true), bytes("1"));
  EXPECT_EQ(store.queuePop("q", false), bytes(""));
  EXPECT_EQ(store.queuePop("q", true), bytes("3"));
  EXPECT_THROW(store.queuePop("q", false), c10::DistQueueEmptyError);
}

TEST_F(StoreQueues, Pop_TimeoutIsVirtualAndNamesTheKey) {
  std::string message;
  const auto outcome = run(2, [&](int rank, FakeStore& store) {
    if (rank == 1) return;
    store.setTimeout(7s);
    try {
      store.queuePop("work", true);
    } catch (const c10::DistStoreError& error) {
      message = error.what_without_backtrace();
    }
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(outcome.end_time.time_since_epoch(), 7s);
  EXPECT_EQ(message, "wait timeout after 7000ms, keys: work (no rank has set: work)");
}

TEST_F(StoreQueues, WithoutTimeout_ADeadlockNamesTheKeys) {
  const auto outcome = run(3, [&](int rank, FakeStore& store) {
    store.setTimeout(c10d::Store::kNoTimeout);
    if (rank == 0) store.queuePop("work", true);
    if (rank == 1) store.multiGet({"a", "b", "c"});
    if (rank == 2) store.append("b", bytes("there"));
  });
  EXPECT_EQ(outcome.ending, Ending::deadlock);
  ASSERT_EQ(outcome.blocked.size(), 2u);
  EXPECT_EQ(outcome.blocked[0].waits_on, "store queue pop from key \"work\"");
  EXPECT_EQ(outcome.blocked[1].waits_on, "store wait for keys \"a\", \"c\"");
}

TEST_F(StoreQueues, WaitSeesElements_GetDoesNot) {
  const auto outcome = run(2, [&](int rank, FakeStore& store) {
    if (rank == 1) {
      exec::this_rank::sleep_for(1s);
      store.queuePush("k", bytes("element"));
      exec::this_rank::sleep_for(1s);
      store.set("k", bytes("value"));
      return;
    }
    store.wait({"k"});
    EXPECT_EQ(exec::this_rank::now().time_since_epoch(), 1s);
    EXPECT_EQ(store.get("k"), bytes("value"));
    EXPECT_EQ(exec::this_rank::now().time_since_epoch(), 2s);
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

TEST_F(StoreQueues, Polling_LetsOthersRun) {
  const auto outcome = run(3, [&](int rank, FakeStore& store) {
    if (rank == 0) {
      exec::this_rank::sleep_for(1s);
      store.queuePush("q", bytes("x"));
    } else if (rank == 1) {
      while (store.queueLen("q") == 0) {
      }
    } else {
      while (store.listKeys().empty()) {
      }
    }
    if (rank == 1) store.set("seen", bytes("x"));
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(outcome.end_time.time_since_epoch(), 1s);
}

TEST_F(StoreQueues, PoppingWithoutBlockingFromAnEmptyQueue_IsALivelock) {
  const auto outcome = run(2, [&](int rank, FakeStore& store) {
    while (rank == 0) {
      try {
        store.queuePop("q", false);
      } catch (const c10::DistQueueEmptyError&) {
      }
    }
  });
  EXPECT_EQ(outcome.ending, Ending::livelock);
}

TEST_F(StoreQueues, Append_OfAllRanks) {
  const auto outcome = run(8, [&](int rank, FakeStore& store) {
    store.append("log", bytes(std::to_string(rank)));
    store.append("log", bytes(";"));
    if (store.add("done", 1) == 8) store.set("all", bytes("x"));
    store.wait({"all"});
    EXPECT_EQ(store.get("log").size(), 16u);
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

TEST_F(StoreQueues, MultiSet_WakesRanksThatWaitForAll) {
  const auto outcome = run(2, [&](int rank, FakeStore& store) {
    c10d::PrefixStore prefixed("p", store.clone());
    if (rank == 0) return prefixed.multiSet({"a", "b"}, {bytes("1"), bytes("2")});
    EXPECT_THAT(prefixed.multiGet({"b", "a", "b"}), ElementsAre(bytes("2"), bytes("1"), bytes("2")));
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_THAT(FakeStore(shared).listKeys(), ElementsAre("p/a", "p/b"));
}

TEST_F(StoreQueues, MultiSet_NeedsAValueForEachKey) {
  FakeStore store(shared);
  EXPECT_THROW(store.multiSet({"a", "b"}, {bytes("1")}), c10::ValueError);
  EXPECT_THROW(store.multiSet({"a"}, {bytes("1"), bytes("2")}), c10::ValueError);
  EXPECT_EQ(store.getNumKeys(), 0);
}

// The guard changes the timeout of the one handle that is behind the prefix, and restores it.
TEST_F(StoreQueues, TimeoutGuard) {
  FakeStore store(shared, 5s);
  const auto other = store.clone();
  c10d::PrefixStore prefixed("p", other);
  {
    c10d::StoreTimeoutGuard guard(prefixed, 1s);
    EXPECT_EQ(other->getTimeout(), 1s);
    EXPECT_EQ(store.getTimeout(), 5s);
  }
  EXPECT_EQ(other->getTimeout(), 5s);
}

}  // namespace
}  // namespace rehearse::fakes::testing
