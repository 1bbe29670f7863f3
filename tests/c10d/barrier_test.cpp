// SPDX-License-Identifier: BSD-3-Clause
// Contract: a barrier ends only after all earlier collectives of its ranks on the same group have ended, as with Gloo
// and NCCL.
#include <chrono>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <rehearse/rehearse.h>

namespace rehearse {
namespace {

using namespace std::chrono_literals;

// 8 MB take a second and the latency is a millisecond, so that large transfers take long and a barrier does not.
WorldOptions slow_network(int ranks, std::uint64_t seed) {
  WorldOptions options;
  options.ranks = ranks;
  options.seed = seed;
  options.network.latency = 1ms;
  options.network.bytes_per_second = 8e6;
  return options;
}

void on_slow_networks(const World::Body& body, bool check_buffers = true) {
  for (const int ranks : {2, 3, 8}) {
    for (const std::uint64_t seed : {1, 2, 3}) {
      auto options = slow_network(ranks, seed);
      options.check_buffers = check_buffers;
      check(options, body);
    }
  }
}

at::Tensor large(double value) { return at::full({1'000'000}, value, at::kDouble); }

TEST(Barrier, CollectivesBeforeIt_AreOverWithIt) {
  on_slow_networks([](RankContext& ctx) {
    const int n = ctx.size();
    auto sum = large(ctx.rank() + 1), sent = large(ctx.rank());
    const auto reduction = ctx.group().allreduce(sum);
    ctx.group().broadcast(sent, n - 1);  // the program drops the Work
    ctx.group().barrier()->wait();
    EXPECT_TRUE(reduction->isCompleted());
    EXPECT_EQ(sum[999'999].item<double>(), n * (n + 1) / 2);
    EXPECT_EQ(sent[0].item<double>(), n - 1);
  });
}

TEST(Barrier, TakesItsOwnTimeAfterTheLastOfThem) {
  World world(slow_network(2, 1));
  const Report report = world.run([](RankContext& ctx) {
    auto sum = large(1);
    ctx.group().barrier()->wait();
    const auto barrier_takes = ctx.now() - kTimeZero;
    ctx.group().allreduce(sum)->wait();
    const auto sum_takes = ctx.now() - kTimeZero - barrier_takes;
    EXPECT_GT(sum_takes, barrier_takes);
    const auto start = ctx.now();
    ctx.group().allreduce(sum);
    ctx.group().barrier()->wait();
    EXPECT_EQ(ctx.now() - start, sum_takes + barrier_takes);
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
}

TEST(Barrier, BarriersInARow_EndInOrder) {
  on_slow_networks([](RankContext& ctx) {
    auto sum = large(1);
    ctx.group().allreduce(sum);
    const auto first = ctx.group().barrier(), second = ctx.group().barrier();
    second->wait();
    EXPECT_TRUE(first->isCompleted());
    EXPECT_EQ(sum[0].item<double>(), ctx.size());
    EXPECT_GT(second->getDuration(), 0.0f);
  });
}

// While a barrier waits, Gloo's threads carry on with later collectives.
TEST(Barrier, CollectivesAfterIt_DoNotWaitForIt) {
  on_slow_networks([](RankContext& ctx) {
    auto sum = large(1), small = at::ones({1}, at::kDouble);
    ctx.group().allreduce(sum);
    const auto barrier = ctx.group().barrier();
    ctx.group().allreduce(small)->wait();
    EXPECT_EQ(small.item<double>(), ctx.size());
    EXPECT_FALSE(barrier->isCompleted());
    barrier->wait();
    EXPECT_EQ(sum[0].item<double>(), ctx.size());
  });
}

// A barrier does not wait for sends, receives and other groups. Gloo's monitored barrier waits for no other work at
// all.
TEST(Barrier, OtherWork_IsNotWaitedFor) {  // the test reads memory of calls still in flight, so check_buffers is off
  on_slow_networks(
      [](RankContext& ctx) {
        const int peer = ctx.rank() ^ 1;
        const bool has_peer = peer < ctx.size();
        auto message = large(ctx.rank()), received = large(-1), sum = large(1);
        const Group other = ctx.new_group({0, 1});
        if (other) other.allreduce(sum);
        Work receive;
        if (has_peer) receive = ctx.group().recv(received, peer);
        ctx.group().barrier()->wait();
        if (other) {
          EXPECT_EQ(sum[0].item<double>(), 1.0);
        }
        if (has_peer) {
          EXPECT_FALSE(receive->isCompleted());
          ctx.group().send(message, peer)->wait();
          receive->wait();
          EXPECT_EQ(received[0].item<double>(), peer);
        }
        auto late = large(1);
        const auto reduction = ctx.group().allreduce(late);
        ctx.group()->monitoredBarrier({});
        EXPECT_FALSE(reduction->isCompleted());
        reduction->wait();
      },
      /*check_buffers=*/false);
}

}  // namespace
}  // namespace rehearse
