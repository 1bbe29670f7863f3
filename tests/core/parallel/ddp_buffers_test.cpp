// SPDX-License-Identifier: BSD-3-Clause
// Buffers follow those of rank 0.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <torch/nn/modules/batchnorm.h>

#include "bit_equal.h"
#include "core/parallel/ddp_fixture.h"

namespace {

using namespace rehearse_test;
using rehearse::DistributedDataParallel;
using rehearse::RankContext;
using rehearse::test::BitEqual;

// Keeps a copy of running_mean from the start of forward(): after DDP's broadcast, before the module's own update.
struct NormImpl : torch::nn::Module {
  NormImpl() : norm(register_module("norm", torch::nn::BatchNorm1d(6))) { to(at::kDouble); }
  at::Tensor forward(const at::Tensor& x) {
    mean_at_entry = norm->running_mean.clone();
    return norm(x);
  }
  torch::nn::BatchNorm1d norm;
  at::Tensor mean_at_entry;
};
TORCH_MODULE(Norm);

TEST(DdpBuffers, RunningMean_FollowsRankZero) {
  at::Tensor of_rank_zero = at::zeros({6}, at::kDouble);
  for (const bool broadcast : {true, false}) {
    std::vector<at::Tensor> before_last(3), after_first(3);
    run_ranks({.ranks = 3}, [&](RankContext& ctx) {
      Norm net;
      DistributedDataParallel ddp(net, ctx.group(), {.broadcast_buffers = broadcast});
      for (int step = 0; step < 2; ++step) {
        ddp(batch_of(ctx.rank(), step)).sum().backward();
        if (step == 0) after_first[ctx.rank()] = net->norm->running_mean.clone();
      }
      before_last[ctx.rank()] = net->mean_at_entry;
    });
    for (int rank = 1; rank < 3; ++rank) {
      EXPECT_FALSE(at::equal(after_first[rank], after_first[0]));
      EXPECT_THAT(before_last[rank], BitEqual(after_first[broadcast ? 0 : rank]));
    }
  }
}

// A forward without grad mode turns off the broadcast of the next forward. PyTorch has the flag
// require_forward_param_sync for this.
TEST(DdpBuffers, ForwardAfterOneWithoutGradMode_NoBroadcast) {
  run_ranks({.ranks = 2}, [](RankContext& ctx) {
    Norm net;
    DistributedDataParallel ddp(net, ctx.group());
    net->eval();
    const auto x = batch_of(ctx.rank(), 0);
    const auto entry_mean = [&] {
      ddp(x);
      return net->mean_at_entry[0].item<double>();
    };
    const double own = ctx.rank() + 1.0;
    net->norm->running_mean.fill_(own);
    {
      const at::NoGradGuard no_grad;
      EXPECT_EQ(entry_mean(), 1.0);
      net->norm->running_mean.fill_(own);
      EXPECT_EQ(entry_mean(), own);
    }
    EXPECT_EQ(entry_mean(), own);
    EXPECT_EQ(entry_mean(), 1.0);
  });
}

}  // namespace
