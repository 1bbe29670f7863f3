// SPDX-License-Identifier: BSD-3-Clause
// Parameters that are shared, frozen, of several dtypes, or in unusual memory layouts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bit_equal.h"
#include "core/parallel/ddp_fixture.h"

namespace {

using namespace rehearse_test;
using rehearse::DistributedDataParallel;
using rehearse::RankContext;
using rehearse::test::BitEqual;

struct TiedLayer : torch::nn::Module {
  explicit TiedLayer(const at::Tensor& shared) : weight(register_parameter("weight", shared)) {}
  at::Tensor weight;
};
struct TiedImpl : torch::nn::Module {
  TiedImpl()
      : encode(register_module("encode", std::make_shared<TiedLayer>(at::empty({6, 6}, at::kDouble)))),
        decode(register_module("decode", std::make_shared<TiedLayer>(encode->weight))) {}
  at::Tensor forward(const at::Tensor& x) { return x.mm(encode->weight).tanh().mm(decode->weight); }
  std::shared_ptr<TiedLayer> encode, decode;
};
TORCH_MODULE(Tied);

template <class Net>
void expect_gradients_of_whole_batch(const rehearse::DistributedDataParallelOptions& options = {}, int ranks = 3) {
  run_ranks({.ranks = ranks}, [&](RankContext& ctx) {
    Net net, alone;
    fill(*net, ctx.rank());
    fill(*alone);
    DistributedDataParallel ddp(net, ctx.group(), options);
    for (int step = 0; step < 3; ++step) {
      ddp.zero_grad();
      alone->zero_grad();
      ddp(batch_of(ctx.rank(), step)).sum().backward();
      (alone(whole_batch(ranks, step)).sum() / ranks).backward();
      EXPECT_TRUE(close(gradient_copies(net->parameters()), gradient_copies(alone->parameters())));
      descend(ddp.parameters(), 0.125);
      descend(alone->parameters(), 0.125);
    }
  });
}

TEST(DdpParameters, SharedByTwoModules_ReducedOnce) {
  expect_gradients_of_whole_batch<Tied>();
  expect_gradients_of_whole_batch<Tied>({.gradient_as_bucket_view = true, .find_unused_parameters = true});
  run_ranks({.ranks = 2}, [](RankContext& ctx) {
    Tied net;
    DistributedDataParallel ddp(net, ctx.group());
    EXPECT_EQ(ddp.parameters().size(), 1u);
    ASSERT_EQ(ddp.buckets().size(), 1u);
    EXPECT_EQ(ddp.buckets()[0].parameters, std::vector<std::string>{"decode.weight"});
  });
}

struct MixedImpl : torch::nn::Module {
  MixedImpl()
      : wide(register_module("wide", double_linear(6, 5))),
        narrow(register_module("narrow", torch::nn::Linear(5, 2))) {}
  at::Tensor forward(const at::Tensor& x) { return narrow(wide(x).to(at::kFloat)).to(at::kDouble); }
  torch::nn::Linear wide, narrow;
};
TORCH_MODULE(Mixed);

TEST(DdpParameters, FloatAndDouble_BucketsOfTheirOwn) {
  run_ranks({.ranks = 3}, [](RankContext& ctx) {
    Mixed net, alone;
    fill(*net, ctx.rank());
    fill(*alone);
    DistributedDataParallel ddp(net, ctx.group());
    ASSERT_EQ(ddp.buckets().size(), 2u);
    EXPECT_EQ(ddp.buckets()[0].bytes, (5 * 2 + 2) * sizeof(float));
    EXPECT_EQ(ddp.buckets()[1].bytes, (6 * 5 + 5) * sizeof(double));
    for (int step = 0; step < 3; ++step) {
      ddp.zero_grad();
      alone->zero_grad();
      ddp(batch_of(ctx.rank(), step)).sum().backward();
      (alone(whole_batch(3, step)).sum() / 3).backward();
      EXPECT_TRUE(close(gradient_copies(net->parameters()), gradient_copies(alone->parameters()), 1e-5));
    }
  });
}

struct FrozenImpl : torch::nn::Module {
  FrozenImpl()
      : base(register_module("base", double_linear(6, 5))), head(register_module("head", double_linear(5, 2))) {
    for (auto& parameter : base->parameters()) parameter.set_requires_grad(false);
  }
  at::Tensor forward(const at::Tensor& x) { return head(base(x)); }
  torch::nn::Linear base, head;
};
TORCH_MODULE(Frozen);

TEST(DdpParameters, Frozen_TakenFromRankZeroButNotReduced) {
  expect_gradients_of_whole_batch<Frozen>();
  run_ranks({.ranks = 2}, [](RankContext& ctx) {
    Frozen net;
    fill(*net, ctx.rank());
    const auto before = copies(net->parameters());
    DistributedDataParallel ddp(net, ctx.group());
    EXPECT_EQ(testing::Matches(BitEqual(before))(net->parameters()), ctx.rank() == 0);
    ASSERT_EQ(ddp.buckets().size(), 1u);
    EXPECT_EQ(ddp.buckets()[0].parameters, (std::vector<std::string>{"head.weight", "head.bias"}));
  });
}

struct StridedImpl : torch::nn::Module {
  StridedImpl()
      : transposed(register_parameter("transposed", at::empty({4, 6}, at::kDouble).t())),
        gappy(register_parameter("gappy", at::zeros({4, 9}, at::kDouble).slice(1, 0, 9, 3))) {}
  at::Tensor forward(const at::Tensor& x) { return x.mm(transposed).tanh().mm(gappy); }
  at::Tensor transposed, gappy;
};
TORCH_MODULE(Strided);

TEST(DdpParameters, NotContiguous_LayoutsKept) {
  expect_gradients_of_whole_batch<Strided>();
  expect_gradients_of_whole_batch<Strided>({.bucket_cap_mb = 0.0001, .gradient_as_bucket_view = true});
  Strided net;
  EXPECT_FALSE(net->transposed.is_contiguous());
  EXPECT_FALSE(net->gappy.is_non_overlapping_and_dense());
}

}  // namespace
