// SPDX-License-Identifier: BSD-3-Clause
// Contract: our back end passes the cases of PyTorch's own C++ tests of Gloo, each rewritten for this project.
// tests/README.md says which test covers which case.
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rehearse/comm/errors.h>
#include <rehearse/rehearse.h>
#include <rehearse_internal/exec/this_rank.h>

#include "bit_equal.h"

namespace rehearse {
namespace {

using namespace std::chrono_literals;
using rehearse::test::BitEqual;
using Tensors = std::vector<at::Tensor>;

constexpr int kTag = 0x1337;

at::Tensor filled(double value, at::ScalarType dtype = at::kFloat) { return at::full({16, 16}, value, dtype); }

void expect_filled(const at::Tensor& tensor, double value) {
  EXPECT_THAT(tensor, BitEqual(filled(value, tensor.scalar_type()))) << "expected " << value;
}

class UpstreamGloo : public testing::TestWithParam<at::ScalarType> {};

TEST_P(UpstreamGloo, AllReduce_FutureHoldsTheSum) {
  check({.ranks = 4}, [](RankContext& ctx) {
    auto tensor = filled(ctx.rank(), GetParam());
    const auto future = ctx.group().allreduce(tensor)->getFuture();
    future->wait();
    expect_filled(future->value().toTensorVector().at(0), 0 + 1 + 2 + 3);
  });
}

TEST_P(UpstreamGloo, AllReduce_WorkHoldsTheSum) {
  check({.ranks = 4}, [](RankContext& ctx) {
    auto tensor = filled(ctx.rank(), GetParam());
    const auto work = ctx.group().allreduce(tensor);
    EXPECT_TRUE(work->wait());
    expect_filled(work->result().at(0), 0 + 1 + 2 + 3);
    expect_filled(tensor, 0 + 1 + 2 + 3);
  });
}

TEST_P(UpstreamGloo, Broadcast_EveryRootReachesAll) {
  check({.ranks = 2}, [](RankContext& ctx) {
    for (const int root : {0, 1}) {
      auto tensor = filled(10 + ctx.rank(), GetParam());
      const auto future = ctx.group().broadcast(tensor, root)->getFuture();
      future->wait();
      expect_filled(future->value().toTensorVector().at(0), 10 + root);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Dtypes, UpstreamGloo, testing::Values(at::kFloat, at::kBFloat16),
                         [](const auto& info) { return std::string(c10::toString(info.param)); });

// Rank r sends rows[r][s] numbers to rank s. Each number shows which rank sent it.
TEST(UpstreamGlooWorlds, AllToAll_UnevenSplits) {
  const std::vector<std::vector<std::int64_t>> rows{{2, 2, 1, 1}, {3, 2, 2, 2}, {2, 1, 1, 1}, {2, 2, 2, 1}};
  check({.ranks = 4}, [&](RankContext& ctx) {
    const auto self = static_cast<std::size_t>(ctx.rank());
    std::vector<std::int64_t> from, expected;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      from.push_back(rows[r][self]);
      std::int64_t place = 0;
      for (std::size_t s = 0; s < self; ++s) place += rows[r][s];
      for (std::int64_t i = 0; i < rows[r][self]; ++i)
        expected.push_back(static_cast<std::int64_t>(10 * r) + place + i);
    }
    std::int64_t sent = 0;
    for (const auto count : rows[self]) sent += count;
    auto input = (at::arange(sent, at::kLong) + 10 * ctx.rank()).to(at::kInt);
    auto output = at::empty({static_cast<std::int64_t>(expected.size())}, at::kInt);
    ctx.group().alltoall(output, input, from, rows[self])->wait();
    EXPECT_THAT(output, BitEqual(at::tensor(expected, at::kLong).to(at::kInt)));
  });
}

TEST(UpstreamGlooWorlds, Barrier_FutureCompletesWhenAllHaveCome) {
  check({.ranks = 2, .network = {.latency = 0ns}}, [](RankContext& ctx) {
    if (ctx.rank() == 1) exec::this_rank::sleep_for(3ms);
    ctx.group().barrier()->getFuture()->wait();
    EXPECT_EQ(ctx.now(), kTimeZero + 3ms);
  });
}

TEST(UpstreamGlooWorlds, MonitoredBarrier_PassesAndThenNamesTheRankThatDoesNotCome) {
  check({.ranks = 2}, [](RankContext& ctx) {
    ctx.group()->monitoredBarrier({});
    if (ctx.rank() == 1) return;
    c10d::BarrierOptions options;
    options.timeout = 1s;
    try {
      ctx.group()->monitoredBarrier(options);
      ADD_FAILURE() << "it passed";
    } catch (const TimeoutError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("Rank 1"));
    }
  });
}

TEST(UpstreamGlooWorlds, SequenceNumbers_StartAlike) {
  std::vector<std::uint64_t> numbers;
  check({.ranks = 4}, [&](RankContext& ctx) {
    const auto backend = ctx.group()->getDefaultBackend();
    backend->setSequenceNumberForGroup();
    numbers.push_back(backend->getSequenceNumberForGroup());
  });
  EXPECT_THAT(numbers, testing::ElementsAre(0, 0, 0, 0));
}

// abort() ends one wait, not the message: a second wait succeeds after the peer has arrived.
void expect_abort_ends_one_wait(bool sends) {
  check({.ranks = 2}, [sends](RankContext& ctx) {
    auto tensor = filled(ctx.rank());
    const bool sender = (ctx.rank() == 0) == sends;
    if (ctx.rank() == 1) {
      exec::this_rank::sleep_for(5ms);
      (sender ? ctx.group().send(tensor, 0, kTag) : ctx.group().recv(tensor, 0, kTag))->wait();
      expect_filled(tensor, sends ? 0 : 1);
      return;
    }
    const auto work = sends ? ctx.group().send(tensor, 1, kTag) : ctx.group().recv(tensor, 1, kTag);
    std::optional<bool> in_thread;
    std::thread waiter([&] { in_thread = work->wait(); });
    exec::this_rank::sleep_for(1ms);
    work->abort();
    waiter.join();
    EXPECT_EQ(in_thread, false);
    EXPECT_TRUE(work->wait());
    expect_filled(tensor, sends ? 0 : 1);
  });
}

TEST(UpstreamGlooWorlds, Send_AbortedWaitCanBeTriedAgain) { expect_abort_ends_one_wait(true); }
TEST(UpstreamGlooWorlds, Receive_AbortedWaitCanBeTriedAgain) { expect_abort_ends_one_wait(false); }

TEST(UpstreamGlooWorlds, Store_OneRankGetsWhatTheOtherSet) {
  const std::vector<std::uint8_t> value{1, 1, 1, 1};
  check({.ranks = 2}, [&](RankContext& ctx) {
    const auto store = ctx.group()->getStore();
    if (ctx.rank() == 0) {
      store->set("key", value);
    } else {
      EXPECT_EQ(store->get("key"), value);
    }
  });
}

TEST(UpstreamGlooWorlds, WaitForASendWithoutAReceive_TimesOut) {
  check({.ranks = 2}, [](RankContext& ctx) {
    auto tensor = filled(1);
    if (ctx.rank() == 1) {
      exec::this_rank::sleep_for(100ms);
      ctx.group().recv(tensor, 0, kTag)->wait();
      return;
    }
    const auto work = ctx.group().send(tensor, 1, kTag);
    EXPECT_THROW(work->wait(1ms), TimeoutError);
    EXPECT_EQ(ctx.now(), kTimeZero + 1ms);
    EXPECT_TRUE(work->wait());
  });
}

// In PyTorch's tests, the process of the peer is killed or stopped. Here, the peer returns or sleeps.
void expect_failed_work(const std::function<void()>& peer) {
  check({.ranks = 2}, [&](RankContext& ctx) {
    ctx.group()->setTimeout(1s);
    auto tensor = filled(1);
    ctx.group().allreduce(tensor)->wait();
    if (ctx.rank() == 1) return peer();
    const auto work = ctx.group().allreduce(tensor);
    EXPECT_THROW(work->wait(), TimeoutError);
    EXPECT_FALSE(work->isSuccess());
    EXPECT_THROW(std::rethrow_exception(work->exception()), std::exception);
  });
}

TEST(UpstreamGlooWorlds, PeerThatIsGone_FailsTheWork) {
  expect_failed_work([] {});
}
TEST(UpstreamGlooWorlds, PeerThatStandsStill_FailsTheWork) {
  expect_failed_work([] { exec::this_rank::sleep_for(1h); });
}

// PyTorch's asynchronous tests of Gloo delay each rank's writes on a CUDA stream, and read results through the Work.
// Here, each rank sleeps before it writes.
TEST(UpstreamGlooWorlds, AsyncAllReduce_ResultIsTheTensor) {
  check({.ranks = 4}, [](RankContext& ctx) {
    auto tensor = at::empty({16, 16});
    exec::this_rank::sleep_for(std::chrono::milliseconds(10 * ctx.rank()));
    tensor.fill_(ctx.rank());
    const auto work = ctx.group().allreduce(tensor);
    work->wait();
    EXPECT_TRUE(work->result().at(0).is_same(tensor));
    expect_filled(tensor, 6);
  });
}

TEST(UpstreamGlooWorlds, AsyncBroadcast_EveryRoot) {
  check({.ranks = 4}, [](RankContext& ctx) {
    for (int root = 0; root < 4; ++root) {
      auto tensor = at::empty({16, 16});
      exec::this_rank::sleep_for(std::chrono::milliseconds(10 * (3 - ctx.rank())));
      tensor.fill_(ctx.rank());
      ctx.group().broadcast(tensor, root)->wait();
      expect_filled(tensor, root);
    }
  });
}

}  // namespace
}  // namespace rehearse
