// SPDX-License-Identifier: BSD-3-Clause
// How worlds with real c10d calls end, besides the cases of first_cases.h: OK if all is well, otherwise with a verdict
// that names the cause.
#include <cstddef>
#include <stdexcept>
#include <system_error>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <rehearse/comm/errors.h>
#include <rehearse/sim/report_writers.h>
#include <rehearse/sim/world.h>

namespace rehearse {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::Not;
using testing::StartsWith;

Report run(int ranks, const World::Body& body) {
  WorldOptions options;
  options.ranks = ranks;
  return World(options).run(body);
}

TEST(WorldEnds, AllRanksAgree_IsSilent) {
  const auto report = run(8, [](RankContext& ctx) {
    auto sum = at::ones({3}) * ctx.rank();
    ctx.group().allreduce(sum)->wait();
    EXPECT_EQ(sum[0].item<int>(), 28);
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(report.operations, 8u);
}

// The command line prints the text of the error.
TEST(WorldEnds, MoreRanksThanThereIsRoomFor_ThrowsWhatTheHeaderNames) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer writes an eighth of each stack's size to forget what had been there";
#endif
  WorldOptions options;
  options.ranks = 65'536;
  options.stack_bytes = std::size_t{16} << 30;  // together, the stacks exceed the address space
  try {
    World(options).run([](RankContext&) {});
    ADD_FAILURE() << "there is room for a thousand terabytes";
  } catch (const std::system_error& error) {
    EXPECT_THAT(error.what(), StartsWith("cannot map another fiber stack of 16777216 KiB (")) << error.what();
  }
  EXPECT_EQ(run(2, [](RankContext& ctx) { ctx.group().barrier()->wait(); }).verdict, Verdict::ok);
}

// A loop of 20,000 polls is slow, but it ends.
TEST(WorldEnds, LoopsThatEndByThemselves_AreNoLivelock) {
  for (const bool all : {false, true}) {
    const auto report = run(4, [all](RankContext& ctx) {
      if (all || ctx.rank() == 0) {
        for (int look = 0; look < 20'000; ++look) {
          if (ctx.store()->check({"never"})) break;
          std::this_thread::yield();
        }
      }
      ctx.group().barrier()->wait();
    });
    EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  }
}

// Two ranks poll isCompleted() for a call that the third rank never makes, so nothing can change any more. The world
// has no timeout, because isCompleted() would be true after one.
TEST(WorldEnds, PollForACallThatARankLeavesOut_NamesCallAndRank) {
  World world({.ranks = 3, .timeout = std::chrono::milliseconds(0)});
  const auto report = world.run([](RankContext& ctx) {
    if (ctx.rank() == 2) return;
    auto tensor = at::ones({3});
    const auto work = ctx.group().allreduce(tensor);
    while (!work->isCompleted()) {
    }
  });
  EXPECT_EQ(report.verdict, Verdict::livelock);
  EXPECT_THAT(report.headline, StartsWith("rank 0 polls allreduce #1 on group \"world\" forever, at "));
  EXPECT_THAT(report.headline, HasSubstr(": rank 2 has ended without that call ("));
  EXPECT_EQ(report.rank_lines[1].waits_for, std::vector{2});
  EXPECT_EQ(report.last_events.size(), 1u);
}

// A program that catches a timeout and gives up has handled it, so its call gets no remark.
TEST(WorldEnds, CaughtTimeout_IsSilent) {
  const auto report = run(2, [](RankContext& ctx) {
    if (ctx.rank() == 1) return;
    auto tensor = at::ones({3});
    EXPECT_THROW(ctx.group().allreduce(tensor)->wait(), TimeoutError);
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_THAT(report.remarks, IsEmpty());
}

// The two ends of a message are different roles, so their labels need not agree. If the run fails for another reason, a
// remark names the first message of the group with two labels: the receives may have taken the wrong messages from
// there.
TEST(WorldEnds, MessagesUnderTwoLabels_AreRemarkedIfTheRunFails) {
  const auto pipeline = [](bool fails, bool by_stage) {
    return run(3, [=](RankContext& ctx) {
      for (int batch = 0; batch < 2; ++batch) {
        const auto label = ctx.label(by_stage ? fmt::format("stage {}", ctx.rank()) : fmt::format("batch {}", batch));
        auto block = at::ones({2});
        if (ctx.rank() > 0) ctx.group().recv(block, ctx.rank() - 1)->wait();
        if (ctx.rank() < 2) ctx.group().send(block, ctx.rank() + 1)->wait();
      }
      if (fails && ctx.rank() == 2) throw std::runtime_error("the loss is NaN");
    });
  };
  for (const bool by_stage : {false, true}) {
    const auto right = pipeline(false, by_stage);
    EXPECT_EQ(right.verdict, Verdict::ok) << right.headline;
    EXPECT_THAT(right.remarks, IsEmpty());
  }
  EXPECT_THAT(pipeline(true, false).remarks, IsEmpty());
  EXPECT_THAT(
      pipeline(true, true).remarks,
      ElementsAre("rank 0: send #1 to rank 1 of \"stage 0\" on group \"world\" was received under label \"stage "
                  "1\", the first message of the group with two labels"));
}

// Each side counts its own calls, so there is no number that both have.
TEST(WorldEnds, MessagesThatDoNotFit_HaveNoNumberInTheirDifference) {
  const auto report = run(2, [](RankContext& ctx) {
    auto given = at::ones({3});
    if (ctx.rank() == 0) {
      ctx.group().barrier()->wait();
      ctx.group().send(given, 1)->wait();
    } else {
      ctx.group().barrier()->wait();
      auto other = at::ones({3}, at::kInt);
      ctx.group().recv(other, 0)->wait();
    }
  });
  EXPECT_EQ(report.verdict, Verdict::mismatch) << report.headline;
  EXPECT_THAT(sim::to_text(report), HasSubstr("\ndifferent calls on group \"world\":\n"));
}

TEST(WorldEnds, MessageUnderTwoLabels_Arrives) {
  const auto exchange = [](bool receiver_has_one, const char* receiver) {
    return run(2, [=](RankContext& ctx) {
      auto block = at::ones({2});
      if (ctx.rank() == 0) {
        const auto label = ctx.label("activations");
        return ctx.group().send(block, 1)->wait(), void();
      }
      if (!receiver_has_one) return ctx.group().recv(block, 0)->wait(), void();
      const auto label = ctx.label(receiver);
      ctx.group().recv(block, 0)->wait();
    });
  };
  EXPECT_EQ(exchange(true, "activations").verdict, Verdict::ok);
  EXPECT_EQ(exchange(false, "").verdict, Verdict::ok);
  EXPECT_EQ(exchange(true, "gradients").verdict, Verdict::ok);
}

// A receive from any source takes one of the messages that are there. The oracle chooses which one.
TEST(WorldEnds, ReceiveFromAnySource_GetsEachMessageOnce) {
  const auto report = run(4, [](RankContext& ctx) {
    if (ctx.rank() != 0) {
      ctx.group().send(at::full({2}, ctx.rank()), 0)->wait();
      return;
    }
    int sum = 0;
    for (int i = 1; i < ctx.size(); ++i) {
      std::vector<at::Tensor> piece{at::zeros({2}, at::kLong)};
      auto work = ctx.group()->recvAnysource(piece, 0);
      work->wait();
      EXPECT_EQ(piece[0][1].item<int>(), work->sourceRank());
      sum += work->sourceRank();
    }
    EXPECT_EQ(sum, 1 + 2 + 3);
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
}

// The rank that crashed might have set both keys, so the waits of the others are no ring, and none follows from
// another.
TEST(WorldEnds, WaitsForKeysBesideACrash_AreNoRing) {
  WorldOptions options;
  options.ranks = 3;
  options.faults = {parse_fault("crash rank=2 at=barrier#1")};
  const auto report = World(options).run([](RankContext& ctx) {
    if (ctx.rank() == 2) ctx.group().barrier()->wait();
    ctx.store()->wait({ctx.rank() == 0 ? "a" : "b"});
  });
  EXPECT_EQ(report.verdict, Verdict::deadlock) << report.headline;
  EXPECT_TRUE(report.wait_cycle.empty());
  EXPECT_THAT(report.headline, HasSubstr("key \"a\", which is not set"));
  EXPECT_THAT(report.headline, HasSubstr("; also, rank 1 waits forever in store wait for key \"b\""));
  EXPECT_THAT(report.headline, Not(HasSubstr("perhaps because of that")));
}

// The budget runs out while the scheduler is about to choose. The world ends, without any other effect.
TEST(WorldEnds, StepBudget_EndsTheWorldWhereverItIsSpent) {
  for (std::uint64_t budget = 1; budget <= 12; ++budget) {
    WorldOptions options;
    options.ranks = 3;
    options.steps_max = budget;
    const auto report = World(options).run([](RankContext& ctx) {
      for (int i = 0; i < 10; ++i) ctx.group().barrier()->wait();
    });
    EXPECT_EQ(report.verdict, Verdict::step_budget) << budget;
  }
}

TEST(WorldEnds, StepBudget_SaysWhereRanksWere) {
  const auto report = World({.ranks = 2, .steps_max = 1000}).run([](RankContext& ctx) {
    while (ctx.rank() == 1) ctx.store()->add("beat", 1), std::this_thread::yield();
    ctx.group().barrier()->wait();
  });
  EXPECT_EQ(report.verdict, Verdict::step_budget);
  EXPECT_THAT(
      report.headline,
      MatchesRegex("more than 1000 switches between ranks; rank 1 was still running at world_ends_test.cpp:.*; look "
                   "for an endless loop there or, if the program needs more switches, raise .world. steps_max .*"));
}

}  // namespace
}  // namespace rehearse
