// SPDX-License-Identifier: BSD-3-Clause
// Contract: whole programs get timeouts as with Gloo: after the limit, and in any call in which they wait. Nothing
// writes to their tensors afterwards. If a program does not handle a timeout, its report names the missing ranks.
#include <chrono>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rehearse/parallel/distributed_data_parallel.h>
#include <rehearse/rehearse.h>
#include <rehearse_internal/exec/this_rank.h>
#include <torch/nn/modules/linear.h>

#include "bit_equal.h"

namespace rehearse {
namespace {

using namespace std::chrono_literals;
using rehearse::test::BitEqual;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

Report run_limited(int ranks, std::chrono::milliseconds timeout, const World::Body& body, double bandwidth = 50e9) {
  WorldOptions options;
  options.ranks = ranks;
  options.timeout = timeout;
  options.network.bytes_per_second = bandwidth;
  return World(options).run(body);
}

TEST(Timeouts, RankThatStalls_FailsTheOthersAfterTheLimit) {
  for (const int ranks : {2, 3, 8}) {
    const auto report = run_limited(ranks, 3s, [](RankContext& ctx) {
      const bool stalls = ctx.rank() == ctx.size() - 1;
      if (stalls) exec::this_rank::sleep_for(6s);
      auto sum = at::full({4}, ctx.rank(), at::kDouble);
      const auto work = ctx.group().allreduce(sum);
      EXPECT_THROW(work->getFuture()->waitAndThrow(), CommError);
      EXPECT_EQ(ctx.now(), kTimeZero + (stalls ? 6s : 3s));
      exec::this_rank::sleep_for(10s);
      EXPECT_THAT(sum, BitEqual(at::full({4}, ctx.rank(), at::kDouble)));
    });
    EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  }
}

TEST(Timeouts, UncaughtErrorOfAFuture_IsATimeoutWithTheLateRank) {
  const auto report = run_limited(3, 3s, [](RankContext& ctx) {
    if (ctx.rank() == 1) exec::this_rank::sleep_for(6s);
    ctx.group().allreduce(at::ones({4}))->getFuture()->waitAndThrow();
  });
  EXPECT_EQ(report.verdict, Verdict::timeout);
  EXPECT_THAT(report.headline, StartsWith("rank 1 was still in a sleep at timeout_test.cpp:"));
  EXPECT_THAT(report.headline, HasSubstr(" in allreduce #1 on group \"world\" until the timeout at 3 s"));
}

// Any rank may run first when the first timeout expires: the rank whose timeout it is, or a rank whose call fails
// because of it.
TEST(Timeouts, RanksThatFailWithTheFirst_AreATimeoutToo) {
  for (const std::uint64_t seed : {1, 2, 3, 4, 5, 6, 7, 8}) {
    WorldOptions options;
    options.ranks = 3;
    options.seed = seed;
    options.network.bytes_per_second = 1000;
    const auto report = World(options).run([](RankContext& ctx) {
      ctx.group()->getDefaultBackend()->setTimeout(std::chrono::seconds(ctx.rank() + 1));
      ctx.group().allreduce(at::ones({1000}))->wait();
    });
    EXPECT_EQ(report.verdict, Verdict::timeout) << report.headline;
  }
}

TEST(Timeouts, LatePeerThatDoesNotCatch_IsATimeoutThatSaysWhose) {
  const auto report = run_limited(2, 3s, [](RankContext& ctx) {
    if (ctx.rank() == 1) exec::this_rank::sleep_for(6s);
    const auto work = ctx.group().allreduce(at::ones({4}));
    if (ctx.rank() == 1) work->wait();
    EXPECT_THROW(work->wait(), TimeoutError);
  });
  EXPECT_EQ(report.verdict, Verdict::timeout);
  EXPECT_EQ(report.headline,
            "rank 1: allreduce #1 on group \"world\" is over: it timed out on rank 0 at 3000 ms of virtual time");
}

TEST(Timeouts, RankThatNeverComes_IsADeadlockUnlessTheErrorIsCaught) {
  for (const bool catches : {true, false}) {
    for (const int ranks : {2, 3, 8}) {
      const auto report = run_limited(ranks, 30min, [catches](RankContext& ctx) {
        if (ctx.rank() == 0) return;
        const auto future = ctx.group().allreduce(at::ones({4}))->getFuture();
        if (!catches) future->waitAndThrow();
        if (catches) {
          EXPECT_THROW(future->waitAndThrow(), TimeoutError);
        }
      });
      EXPECT_EQ(report.verdict, catches ? Verdict::ok : Verdict::deadlock) << report.headline;
      if (catches) {
        EXPECT_THAT(report.headline, HasSubstr(" gave up allreduce #1 on group \"world\", to which rank 0 never came"));
      } else {
        EXPECT_EQ(report.headline, "allreduce #1 on group \"world\": rank 0 has ended and will never come");
        for (int rank = 1; rank < ranks; ++rank) {
          const auto& line = report.rank_lines[static_cast<std::size_t>(rank)];
          EXPECT_EQ(line.state, RankOutcome::blocked);
          EXPECT_EQ(line.waits_for, std::vector{0});
          EXPECT_EQ(line.at, kTimeZero);
          EXPECT_THAT(line.where.text, StartsWith("timeout_test.cpp:")) << "rank " << rank;
        }
      }
    }
  }
}

// Gloo raises the timeout from backward(), so a training loop can recover.
TEST(Timeouts, BackwardOfDdp_RaisesAndCanBeCaught) {
  for (const int ranks : {2, 3}) {
    int caught = 0;
    const auto report = run_limited(ranks, 3s, [&caught](RankContext& ctx) {
      const torch::nn::Linear linear(2, 2);
      DistributedDataParallel ddp(linear, ctx.group());
      const auto loss = ddp.forward(at::ones({1, 2})).sum();
      if (ctx.rank() == 0) return exec::this_rank::sleep_for(10s);
      const auto start = ctx.now();
      try {
        loss.backward();
        ADD_FAILURE() << "backward() went on without rank 0";
      } catch (const TimeoutError& error) {
        EXPECT_THAT(error.what(), HasSubstr("missing rank 0"));
        EXPECT_EQ(ctx.now() - start, 3s);
        ++caught;
      }
    });
    EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
    EXPECT_EQ(caught, ranks - 1);
  }
}

TEST(Timeouts, TransferThatTakesTooLong_WritesNothing) {
  const auto report = run_limited(
      2, 1s,
      [](RankContext& ctx) {
        auto sum = at::full({1000}, ctx.rank() + 1, at::kDouble), message = at::full({1000}, 7, at::kDouble);
        EXPECT_THROW(ctx.group().allreduce(sum)->wait(), CommError);
        EXPECT_THROW((ctx.rank() == 0 ? ctx.group().send(sum, 1) : ctx.group().recv(message, 0))->wait(), CommError);
        exec::this_rank::sleep_for(100s);
        EXPECT_THAT(sum, BitEqual(at::full({1000}, ctx.rank() + 1, at::kDouble)));
        EXPECT_THAT(message, BitEqual(at::full({1000}, 7, at::kDouble)));
      },
      1000);
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
}

// isCompleted() becomes true after a failure, too, so a program that only polls does not notice the failure.
TEST(Timeouts, PollThatTakesAFailureForTheEnd_IsReported) {
  const auto report = run_limited(3, 3s, [](RankContext& ctx) {
    if (ctx.rank() == 2) return;
    const auto work = ctx.group().allreduce(at::ones({4}));
    while (!work->isCompleted()) {
    }
    EXPECT_EQ(ctx.now(), kTimeZero + 3s);
  });
  EXPECT_EQ(report.verdict, Verdict::mismatch);
  EXPECT_THAT(
      report.headline,
      MatchesRegex("allreduce #1 on group \"world\" was called by ranks 0-1 at timeout_test.cpp:[0-9]+ in .*lambda and "
                   "never by rank 2; it timed out, and the program never asked for its result"));
}

// Rank 0's store wait is unrelated to its all-reduce, which times out. The report has the time at which the wait began.
TEST(Timeouts, UnrelatedWork_DoesNotHideADeadlock) {
  const auto report = run_limited(3, 3s, [](RankContext& ctx) {
    if (ctx.rank() == 0) {
      const auto dropped = ctx.group().allreduce(at::ones({4}));
      ctx.store()->wait({"never"}, 30min);
    }
    if (ctx.rank() == 1) ctx.store()->wait({"never either"}, 30min);
  });
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  EXPECT_EQ(report.rank_lines[1].at, kTimeZero);
  EXPECT_EQ(report.rank_lines[0].at, kTimeZero);
}

}  // namespace
}  // namespace rehearse
