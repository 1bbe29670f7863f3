// SPDX-License-Identifier: BSD-3-Clause
// Contract: in a NativeScope, a rank does not switch, and its threads are real. Afterwards all is as before.
#include <rehearse_internal/exec/native_scope.h>

#include <atomic>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <rehearse_internal/exec/rank_of_thread.h>
#include <rehearse_internal/exec/this_rank.h>

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

TEST(NativeScope, Refusals_TellWhereTheRankIs) {
  World w(2);
  w.sink.verdict = FailureSink::Verdict::keep_running;
  std::mutex mutex;
  const auto outcome = w.run([&](int rank) {
    if (rank == 0) {
      const std::lock_guard held(mutex);
      this_rank::sleep_for(1h);
      const NativeScope native;
      this_rank::yield();
    }
    this_rank::sleep_for(1ms);
    const NativeScope native;
    const std::lock_guard waits(mutex);
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  const std::string where = " in a call into a library that waits by itself (exec::NativeScope)";
  const std::vector<std::string> expected{
      "rank 1: rank 1 waits" + where +
          " for a mutex held by rank 0, which can unlock it only after the call: lock it before the call, or not "
          "across "
          "what suspends a rank",
      "rank 0: this_rank::yield() was called by rank 0" + where +
          ", in which ranks cannot wait for each other; call it outside of the call"};
  EXPECT_EQ(w.sink.told, expected);
}

// During unwinding, and in std::terminate(), the rank is a fiber again.
TEST(NativeScope, RankThatFailsInIt_FailsAsAnyOther) {
  for (const bool terminates : {false, true}) {
    World w(2);
    w.sink.verdict = FailureSink::Verdict::keep_running;
    const auto outcome = w.run([&](int rank) {
      if (rank == 1) return this_rank::sleep_for(1ms);
      const NativeScope native;
      if (terminates) std::terminate();
      throw std::runtime_error("NCCL");
    });
    EXPECT_EQ(outcome.ending, Ending::all_returned);
    EXPECT_EQ(outcome.ranks, std::vector({RankEnd::failed, RankEnd::returned}));
    EXPECT_EQ(outcome.end_time, at(1ms));
  }
  EXPECT_EQ(rank_of_thread().rank, -1);
}

// If the thread were a fiber, it would run only when the rank waits for it.
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
