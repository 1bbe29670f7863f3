// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/exec/fiber_local.h>

#include <thread>

#include <rehearse/exec/wait_queue.h>
#include <rehearse_internal/exec/this_rank.h>

#include "core/exec/world_fixture.h"

namespace rehearse::exec::test {
namespace {

int g_alive = 0;
std::vector<std::string> g_destroyed;

struct Counted {
  Counted() { ++g_alive; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  ~Counted() {
    --g_alive;
    if (!name.empty()) g_destroyed.push_back(name);
  }
  int value = 0;
  std::string name;
};

const FiberLocal<Counted> g_local;
const FiberLocal<Counted> g_other;
const FiberLocal<std::int64_t> g_number;

class FiberLocals : public Worlds {
 protected:
  void SetUp() override { g_destroyed.clear(); }
};
REHEARSE_IN_WORLDS(FiberLocals);

TEST_P(FiberLocals, EachFiber_FindsItsOwnAcrossSwitches) {
  auto w = world();
  const int before = g_alive;
  const auto outcome = w.run([&](int rank) {
    EXPECT_EQ(g_local.find(), nullptr);
    EXPECT_EQ(*g_number, 0);  // value-initialised
    Counted* const mine = &g_local.get();
    for (int k = 1; k <= 3; ++k) {
      g_local->value += rank;
      *g_number += k;
      this_rank::yield();
      EXPECT_EQ(&g_local.get(), mine);
      EXPECT_EQ(g_local->value, k * rank);
      EXPECT_EQ(*g_number, k * (k + 1) / 2);
      EXPECT_EQ(g_other.find(), nullptr);
    }
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(g_alive, before);
}

TEST_P(FiberLocals, HelperFibers_HaveTheirOwn) {
  auto w = world();
  const auto outcome = w.run([&](int rank) {
    g_local->value = rank + 1;
    bool done = false;
    WaitQueue ended;
    RankExecutor::current()->spawn([&] {
      EXPECT_EQ(g_local.find(), nullptr);
      g_local->value = -rank - 1;
      this_rank::yield();
      EXPECT_EQ(g_local->value, -rank - 1);
      done = true;
      ended.notify_all();
    });
    while (!done) ended.wait(FixedObserver("its helper"));
    EXPECT_EQ(g_local->value, rank + 1);
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

TEST_P(FiberLocals, WorldThatEndsEarly_DestroysAll) {
  auto w = world();
  const int before = g_alive;
  const auto outcome = w.run([&](int rank) {
    g_local->value = rank;
    WaitQueue never;
    if (rank == 0) this_rank::sleep_for(1ms);
    if (rank == 0) throw std::runtime_error("it fails");
    never.wait(FixedObserver("nothing"));
  });
  EXPECT_EQ(outcome.ending, Ending::rank_failed);
  EXPECT_EQ(g_alive, before);
}

// std::terminate() leaves the fiber behind, and its frames are never unwound.
TEST_P(FiberLocals, FiberLeftBehind_IsDestroyedWithItsWorld) {
  auto w = world();
  const int before = g_alive;
  const auto outcome = w.run([&](int rank) {
    g_local->value = rank;
    if (rank == 1) std::terminate();
  });
  EXPECT_EQ(outcome.ending, Ending::rank_failed);
  EXPECT_EQ(g_alive, before);
}

TEST(FiberLocal, IsDestroyedInItsFiber_TheLastMadeFirst) {
  struct AsksWhereItEnds {
    ~AsksWhereItEnds() {
      g_destroyed.push_back("in rank " + std::to_string(this_rank::rank()));
      this_rank::yield();
      g_other->name = "made by a destructor";
    }
  };
  static const FiberLocal<AsksWhereItEnds> asks;
  g_destroyed.clear();
  World w(2);
  w.run([](int rank) {
    if (rank != 1) return;
    g_local->name = "first";
    asks.get();
    g_other->name = "second";
  });
  EXPECT_EQ(g_destroyed, (std::vector<std::string>{"second", "in rank 1", "made by a destructor", "first"}));
}

TEST(FiberLocal, FiberThatTakesThePlaceOfAnother_FindsNothing) {
  World w(1);
  w.run([](int) {
    for (int k = 0; k < 3; ++k) {
      std::thread([] {  // starts a helper fiber; the next helper takes its id
        EXPECT_EQ(g_local.find(), nullptr);
        g_local->value = 1;
      })
          .join();
    }
  });
}

TEST(FiberLocal, OutsideOfFibers_OneForEachThread) {
  g_local->value = 7;
  int of_thread = -1;
  const int before = g_alive;
  std::thread([&] { of_thread = g_local->value++; }).join();
  EXPECT_EQ(of_thread, 0);
  EXPECT_EQ(g_alive, before);
  World w(2);
  w.run([](int) { EXPECT_EQ(g_local->value, 0); });
  EXPECT_EQ(g_local->value, 7);
  EXPECT_EQ(&*g_local, g_local.find());
}

TEST(FiberLocal, ConstructorThatThrows_LeavesNothing) {
  struct ThrowsOnce {
    ThrowsOnce() {
      static int made = 0;
      if (made++ == 0) throw std::runtime_error("the first");
    }
  };
  static const FiberLocal<ThrowsOnce> local;
  EXPECT_THROW(local.get(), std::runtime_error);
  EXPECT_EQ(local.find(), nullptr);
  EXPECT_NE(&local.get(), nullptr);
}

}  // namespace
}  // namespace rehearse::exec::test
