// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/job/rank_note.h>

#include <thread>

#include <gtest/gtest.h>

// Contract: a rank's note can be read at any moment, and tells how far the rank had come.
namespace rehearse {
namespace {

using namespace std::chrono_literals;

const std::string kBarrier = "barrier #2 on group \"world\"";

class RankNotes : public ::testing::Test {
 protected:
  RankNote note_;
  const LentRankNote lent_{note_};
};

TEST_F(RankNotes, BeforeTheRun_NothingIsKnown) {
  const auto known = note_.known();
  EXPECT_FALSE(known.began.has_value());
  EXPECT_EQ(known.calls, 0u);
  EXPECT_EQ(known.completed_last, "");
  EXPECT_EQ(known.waits_in, "");
  EXPECT_FALSE(known.ended.has_value());
}

TEST_F(RankNotes, CallsAndWaits_AreKnown) {
  note_.begin(5s);
  note_.count_call();
  note_.completed("barrier #1 on group \"world\"");
  note_.count_call();
  {
    const RankNote::Wait wait(kBarrier);
    EXPECT_EQ(note_.known().waits_in, kBarrier);
  }
  const auto known = note_.known();
  EXPECT_EQ(known.began, 5s);
  EXPECT_EQ(known.calls, 2u);
  EXPECT_EQ(known.completed_last, "barrier #1 on group \"world\"");
  EXPECT_EQ(known.waits_in, "");
}

TEST_F(RankNotes, WaitInWhichTheWorldEnded_TakesTheTextOfTheEnd) {
  {
    const RankNote::Wait wait(kBarrier);
    note_.world_ends(kBarrier + " (2 of 3 ranks have called it)", std::vector{1});
  }
  EXPECT_EQ(note_.known().waits_in, kBarrier + " (2 of 3 ranks have called it)");
  EXPECT_EQ(note_.known().waits_for, std::vector<int>{1});
}

TEST_F(RankNotes, WaitInAnotherCall_KeepsItsOwnText) {
  note_.world_ends(kBarrier, std::vector{1});
  const RankNote::Wait wait("store wait for key \"never\"");
  EXPECT_EQ(note_.known().waits_in, "store wait for key \"never\"");
  EXPECT_TRUE(note_.known().waits_for.empty());
}

TEST_F(RankNotes, WaitsOfOtherThreads_AreNotTheRanks) {
  const RankNote::Wait wait(kBarrier);
  std::jthread([] { const RankNote::Wait other("allreduce #1 on group \"pair\""); }).join();
  EXPECT_EQ(note_.known().waits_in, kBarrier);
}

TEST_F(RankNotes, EndOfTheBody_IsKnown_AndForgottenByTheNextRun) {
  note_.body_ended(RankOutcome::failed, "no more data", kTimeZero + 3ms);
  const auto known = note_.known();
  EXPECT_EQ(known.ended, RankOutcome::failed);
  EXPECT_EQ(known.what, "no more data");
  EXPECT_EQ(known.ended_at, kTimeZero + 3ms);
  note_.begin(1s);
  EXPECT_FALSE(note_.known().ended.has_value());
}

TEST(SharedText, WhatDoesNotFit_IsCutOff) {
  SharedText text;
  text.set(std::string(300, 'a'));
  EXPECT_EQ(text.get(), std::string(255, 'a'));
  text.set("b");
  EXPECT_EQ(text.get(), "b");
}

}  // namespace
}  // namespace rehearse
