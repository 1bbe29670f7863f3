// SPDX-License-Identifier: BSD-3-Clause
// Contract: in a NativeScope a rank does not switch, and its threads are real; behind it all is as before.
#include <rehearse/exec/native_scope.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include <rehearse/exec/rank_of_thread.h>
#include <rehearse/exec/this_rank.h>

#include "core/exec/world_fixture.h"

namespace rehearse::exec::test {
namespace {

TEST(NativeScope, WhatSwitches_IsRefusedAndTheRankIsKnown) {
  World w(2);
  const auto outcome = w.run([](int rank) {
    {
      const NativeScope native;
      const NativeScope inner;
      EXPECT_FALSE(this_rank::is_fiber());
      EXPECT_EQ(rank_of_thread().rank, rank);
      EXPECT_THROW(this_rank::sleep_for(std::chrono::milliseconds(1)), std::logic_error);
    }
    EXPECT_TRUE(this_rank::is_fiber());
    this_rank::sleep_for(std::chrono::milliseconds(1));
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(outcome.end_time, kTimeZero + std::chrono::milliseconds(1));
}

// As a fiber it would run only when the rank waits for it.
TEST(NativeScope, ItsThreads_RunByThemselves) {
  World w(2);
  const auto outcome = w.run([](int) {
    const NativeScope native;
    std::atomic<bool> ran{false};
    std::thread thread([&ran] { ran = true; });
    while (!ran) std::this_thread::yield();
    thread.join();
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

TEST(NativeScope, OutsideOfRanks_ChangesNothing) {
  const NativeScope native;
  EXPECT_EQ(rank_of_thread().rank, -1);
}

}  // namespace
}  // namespace rehearse::exec::test
