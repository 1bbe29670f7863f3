// SPDX-License-Identifier: BSD-3-Clause
// Contract: until a rank knows that its call has ended, no operator may write the call's inputs, read or write its
// outputs, or resize its tensors. The headline names rank, operator, line and call.
#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <torch/nn/modules/linear.h>
#include <torch/csrc/distributed/c10d/comm.hpp>

#include <rehearse/parallel/distributed_data_parallel.h>

#include "checked_world.h"

// Outside namespace rehearse, because without line tables, reports take code of that namespace for library code.
namespace checked_programs {
namespace {

using namespace rehearse;
using namespace rehearse::test;

constexpr const char* kCall = R"(allreduce #1 on group "world")";

TEST(BufferCheck, TensorWrittenInFlight_NamesRankOperatorLineAndCall) {
  constexpr int kLine = __LINE__ + 4;
  const auto report = run_checked([](RankContext& ctx) {
    auto value = at::ones({4});
    auto work = ctx.group().allreduce(value);
    if (ctx.rank() == 1) value.add_(1);
    work->wait();
  });
  EXPECT_TRUE(says(report, "rank 1: aten::add_ at " + place(__FILE__, kLine))) << report.headline;
  EXPECT_TRUE(says(report, std::string("writes the tensor of ") + kCall)) << report.headline;
  EXPECT_TRUE(says(report, "(called at " + place(__FILE__, kLine - 1))) << report.headline;
  EXPECT_TRUE(says(report, ", which rank 1 has not waited for")) << report.headline;
}

// Messages end in any order. If the sender does not wait, only a barrier shows that an earlier send has ended.
TEST(BufferCheck, SendThatALaterMessageSaysNothingOf_IsFound) {
  const auto run_with = [](bool barrier) {
    return run_checked([barrier](RankContext& ctx) {
      if (ctx.rank() > 1) {
        if (barrier) ctx.group().barrier()->wait();
        return;
      }
      const int peer = 1 - ctx.rank();
      auto mine = at::ones({4}), theirs = at::zeros({4});
      if (ctx.rank() == 1) {
        ctx.group().recv(theirs, peer)->wait();
        ctx.group().send(mine, peer)->wait();
      } else {
        ctx.group().send(mine, peer);
        ctx.group().recv(theirs, peer)->wait();
      }
      if (barrier) ctx.group().barrier()->wait();
      if (ctx.rank() == 0) mine.fill_(2);
    });
  };
  const auto report = run_with(false);
  EXPECT_TRUE(says(report, "rank 0: aten::fill_ at ")) << report.headline;
  EXPECT_TRUE(says(report, "writes the input of send #1 to rank 1 on group \"world\"")) << report.headline;
  EXPECT_EQ(run_with(true).verdict, Verdict::ok);
}

// As ring attention does it: the second hop receives into the tensor that the first hop sends. Whether that send has
// moved its bytes by then is up to the schedule.
TEST(BufferCheck, ReceiveIntoATensorThatNobodyKnowsToBeSent_IsFound) {
  const auto run_with = [](std::uint64_t seed, bool waits) {
    auto options = checked(4);
    options.seed = seed;
    return run_checked(
        [waits](RankContext& ctx) {
          const int next = (ctx.rank() + 1) % ctx.size(), before = (ctx.rank() + ctx.size() - 1) % ctx.size();
          auto mine = at::ones({4}), theirs = at::zeros({4});
          for (int hop = 0; hop < 2; ++hop) {
            auto sent = ctx.group().send(mine, next);
            ctx.group().recv(theirs, before)->wait();
            if (waits) sent->wait();
            std::swap(mine, theirs);
          }
        },
        options);
  };
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const auto report = run_with(seed, false);
    EXPECT_TRUE(says(report, "recv #4 from rank ")) << seed << report.headline;
    EXPECT_TRUE(says(report, " writes the input of send #1 to rank ")) << seed << report.headline;
    EXPECT_EQ(run_with(seed, true).verdict, Verdict::ok);
  }
}

// The collectives of a group end in order, and nothing orders them and messages.
TEST(BufferCheck, MessageOfACollectivesResult_NeedsAWait) {
  const auto run_with = [](bool of_result) {
    return run_checked([of_result](RankContext& ctx) {
      auto value = at::ones({4}), other = at::ones({4});
      ctx.group().allreduce(value);
      ctx.compute(std::chrono::seconds(1));
      auto& sent = of_result ? value : other;
      (ctx.rank() == 0 ? ctx.group().send(sent, 1) : ctx.group().recv(other, 0))->wait();
      ctx.group().allreduce(value)->wait();
    });
  };
  EXPECT_TRUE(says(run_with(true), " reads the tensor of allreduce #1 on group \"world\"")) << run_with(true).headline;
  EXPECT_EQ(run_with(false).verdict, Verdict::ok) << run_with(false).headline;
}

class ScalesInFlight final : public c10d::CommHookInterface {
 public:
  explicit ScalesInFlight(c10::intrusive_ptr<c10d::ProcessGroup> group) : group_(std::move(group)) {}
  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override {
    std::vector<at::Tensor> buffers{bucket.getBuffer()};
    const auto work = group_->allreduce(buffers);
    bucket.getBufferRef().mul_(0.5);
    return work->getFuture();
  }
  at::Tensor parseHookResult(const c10::IValue& result) override {
    return c10d::detail::parseCppCommHookResult(result);
  }

 private:
  c10::intrusive_ptr<c10d::ProcessGroup> group_;
};

TEST(BufferCheck, GradientsOfDdp_AreNamedByBucketAndParameters) {
  const auto report = run_checked([](RankContext& ctx) {
    torch::nn::Linear net(3, 2);
    DistributedDataParallel ddp(net, ctx.group());
    ddp.register_comm_hook(std::make_unique<ScalesInFlight>(ctx.group()), "scales");
    ddp(at::ones({4, 3})).sum().backward();
  });
  EXPECT_EQ(report.verdict, Verdict::check_failed) << report.headline;
  EXPECT_TRUE(says(report, "of \"DDP bucket 0 of 1: weight, bias\" on group \"world\"")) << report.headline;
}

TEST(BufferCheck, WriteThroughAView_IsFound) {
  const auto report = run_checked([](RankContext& ctx) {
    auto value = at::ones({4, 4});
    auto work = ctx.group().allreduce(value);
    if (ctx.rank() == 1) value.t().select(1, 2).zero_();
    work->wait();
  });
  EXPECT_TRUE(says(report, "rank 1: aten::zero_ at ")) << report.headline;
}

TEST(BufferCheck, WriteThroughAnotherStorageOfThatMemory_IsFound) {
  const auto report = run_checked([](RankContext& ctx) {
    auto value = at::ones({4});
    auto alias = at::from_blob(value.data_ptr(), {2}, at::kFloat);
    auto work = ctx.group().allreduce(value);
    if (ctx.rank() == 0) alias.fill_(3);
    work->wait();
  });
  EXPECT_TRUE(says(report, "rank 0: aten::fill_ at ")) << report.headline;
}

TEST(BufferCheck, WriteByAnOutArgument_IsFound) {
  const auto report = run_checked([](RankContext& ctx) {
    auto value = at::ones({4});
    auto work = ctx.group().allreduce(value);
    if (ctx.rank() == 0) at::full_out(value, {4}, 2.0);
    work->wait();
  });
  EXPECT_TRUE(says(report, "writes the tensor of")) << report.headline;
}

TEST(BufferCheck, OutputReadInFlight_IsFound) {
  const auto report = run_checked([](RankContext& ctx) {
    auto value = at::ones({4});
    auto work = ctx.group().allreduce(value);
    if (ctx.rank() == 1) ctx.expect(value.sum().item<float>() > 0, "positive");
    work->wait();
  });
  EXPECT_TRUE(says(report, "rank 1: aten::sum at ")) << report.headline;
  EXPECT_TRUE(says(report, std::string("reads the tensor of ") + kCall)) << report.headline;
}

// In this run, the all-reduce has ended when the rank reads the result. In a real job it may still be in flight.
TEST(BufferCheck, ResultUsedBeforeItsWait_IsFound) {
  const auto report = run_checked([](RankContext& ctx) {
    auto value = at::ones({4});
    auto work = ctx.group().allreduce(value);
    ctx.compute(std::chrono::seconds(1));
    if (ctx.rank() == 1) ctx.expect(value.equal(at::full({4}, 2.0F)), "the sum is right");
    work->wait();
  });
  EXPECT_TRUE(says(report, "rank 1: aten::equal at ")) << report.headline;
}

TEST(BufferCheck, ResultWhoseWorkWasDropped_IsFound) {
  const auto report = run_checked([](RankContext& ctx) {
    auto value = at::ones({4});
    ctx.group().allreduce(value);
    ctx.compute(std::chrono::seconds(1));
    if (ctx.rank() == 1) value.mul_(2);
  });
  EXPECT_TRUE(says(report, "rank 1: aten::mul_ at ")) << report.headline;
}

TEST(BufferCheck, InputMayBeReadAndNotWritten) {
  const auto gathers = [](bool writes) {
    return run_checked([=](RankContext& ctx) {
      auto input = at::ones({4});
      std::vector<at::Tensor> outputs{at::zeros({4}), at::zeros({4})};
      auto work = ctx.group().allgather(outputs, input);
      ctx.expect(input.sum().item<float>() == 4, "as it was");
      if (writes && ctx.rank() == 0) input.neg_();
      work->wait();
    });
  };
  EXPECT_EQ(gathers(false).verdict, Verdict::ok) << gathers(false).headline;
  EXPECT_TRUE(says(gathers(true), "writes the input of allgather #1")) << gathers(true).headline;
}

TEST(BufferCheck, OutputOfAReceiveReadInFlight_IsFound) {
  const auto report = run_checked([](RankContext& ctx) {
    auto value = at::full({4}, static_cast<double>(ctx.rank()));
    auto work = ctx.rank() == 0 ? ctx.group().send(value, 1) : ctx.group().recv(value, 0);
    if (ctx.rank() == 1) value.clone();
    work->wait();
  });
  EXPECT_TRUE(says(report, R"(reads the output of recv #1 from rank 0 on group "world")")) << report.headline;
}

TEST(BufferCheck, TensorResizedInFlight_IsFound) {
  const auto report = run_checked([](RankContext& ctx) {
    auto value = at::ones({4});
    auto work = ctx.group().allreduce(value);
    if (ctx.rank() == 1) value.resize_({1000});
    work->wait();
  });
  EXPECT_TRUE(says(report, "rank 1: aten::resize_ at ")) << report.headline;
  EXPECT_TRUE(says(report, std::string("resizes the tensor of ") + kCall)) << report.headline;
}

TEST(BufferCheck, TwoCallsUnderWayOnOneTensor_AreFound) {
  const auto report = run_checked([](RankContext& ctx) {
    auto value = at::ones({4});
    auto first = ctx.group().allreduce(value);
    auto second = ctx.group().allreduce(value.slice(0, 2));
    first->wait();
    second->wait();
  });
  EXPECT_TRUE(says(report, R"(allreduce #2 on group "world" at )")) << report.headline;
  EXPECT_TRUE(says(report, std::string("writes the tensor of ") + kCall)) << report.headline;
}

TEST(BufferCheck, WriteInABackwardPass_IsFound) {
  const auto report = run_checked([](RankContext& ctx) {
    auto weight = at::ones({4}).set_requires_grad(true);
    (weight * 2).sum().backward();
    auto grad = weight.grad();
    auto work = ctx.group().allreduce(grad);
    if (ctx.rank() == 0) (weight * 3).sum().backward();  // adds to the gradient
    work->wait();
  });
  EXPECT_TRUE(says(report, "rank 0: aten::add_ at ")) << report.headline;
}

TEST(BufferCheck, IsOn_UnlessTheLevelOrItsOwnOptionSaysOtherwise) {
  const auto verdict_with = [](const WorldOptions& options) {
    return run_checked(
               [](RankContext& ctx) {
                 auto value = at::ones({4});
                 auto work = ctx.group().allreduce(value);
                 if (ctx.rank() == 1) value.add_(1);
                 work->wait();
               },
               options)
        .verdict;
  };
  EXPECT_EQ(verdict_with({}), Verdict::check_failed);
  EXPECT_EQ(verdict_with({.check_buffers = false}), Verdict::ok);
  EXPECT_EQ(verdict_with({.check_level = CheckLevel::none}), Verdict::ok);
  EXPECT_EQ(verdict_with({.check_level = CheckLevel::none, .check_buffers = true}), Verdict::check_failed);
}

TEST(BufferCheck, RootOfABroadcast_MayBeReadAtTheRoot) {
  const auto reads_at = [](int rank) {
    return run_checked([=](RankContext& ctx) {
      auto value = at::full({4}, 1.0F + static_cast<float>(ctx.rank()));
      auto work = ctx.group().broadcast(value, 0);
      if (ctx.rank() == rank) value.sum();
      work->wait();
    });
  };
  EXPECT_EQ(reads_at(0).verdict, Verdict::ok) << reads_at(0).headline;
  EXPECT_TRUE(says(reads_at(1), "rank 1: aten::sum at ")) << reads_at(1).headline;
}

TEST(BufferCheck, OneTensorForAllOutputs_IsFound) {
  constexpr int kLine = __LINE__ + 3;
  const auto report = run_checked([](RankContext& ctx) {
    std::vector<at::Tensor> gathered(static_cast<std::size_t>(ctx.size()), at::zeros({2}));
    ctx.group().allgather(gathered, at::ones({2}))->wait();
  });
  EXPECT_TRUE(says(report, "allgather #1 on group \"world\" at " + place(__FILE__, kLine))) << report.headline;
  EXPECT_TRUE(says(report, " has two outputs in the same memory")) << report.headline;
}

TEST(BufferCheck, OutputsThatOverlapInPart_AreFound) {
  const auto report = run_checked([](RankContext& ctx) {
    const auto whole = at::zeros({2 * ctx.size() - 1});
    std::vector<at::Tensor> gathered;
    for (int rank = 0; rank < ctx.size(); ++rank) gathered.push_back(whole.narrow(0, std::max(0, 2 * rank - 1), 2));
    ctx.group().allgather(gathered, at::ones({2}))->wait();
  });
  EXPECT_TRUE(says(report, " has two outputs in the same memory")) << report.headline;
}

TEST(BufferCheck, OutputsBesideEachOther_AreSilent) {
  expect_silent([](RankContext& ctx) {
    const auto whole = at::zeros({2 * ctx.size()});
    std::vector<at::Tensor> gathered = whole.split(2);
    ctx.group().allgather(gathered, at::ones({2}))->wait();
    gathered.assign(static_cast<std::size_t>(ctx.size()), at::zeros({0}));
    ctx.group().allgather(gathered, at::ones({0}))->wait();
    auto own = whole.narrow(0, 2 * ctx.rank(), 2);  // an all-gather in place: the input is a part of the output
    gathered = whole.split(2);
    ctx.group().allgather(gathered, own)->wait();
  });
}

}  // namespace
}  // namespace checked_programs
