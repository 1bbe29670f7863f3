// SPDX-License-Identifier: BSD-3-Clause
// PyTorch's tests of pieces whose compiler changes strides. The back end here makes outputs of four dimensions
// channels-last, and states this layout. It does not change outputs whose layout BackendInput::fixed_layouts fixes.
#include <memory>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>

#include <rehearse/compile/compile.h>
#include <rehearse/parallel/distributed_data_parallel.h>

#include "core/compile/partitions/layout_backend.h"
#include "core/compile/seeds/seed_test.h"

namespace rehearse::compiler {
namespace {

torch::nn::Sequential four_convolutions() {
  torch::nn::Sequential net;
  for (int i = 0; i < 4; ++i) {
    net->push_back(torch::nn::Conv2d(torch::nn::Conv2dOptions(512, 512, 1).bias(false)));
    net->push_back(torch::nn::ReLU());
  }
  return net;
}

std::vector<at::Tensor> gradients_of(torch::nn::Sequential& net, const at::Tensor& result) {
  result.square().sum().backward();
  std::vector<at::Tensor> gradients;
  for (at::Tensor& parameter : net->parameters()) {
    gradients.push_back(parameter.grad().clone());
    parameter.mutable_grad().reset();
  }
  return gradients;
}

struct Followed {
  CompileStats stats;
  Counts compiles;  // of each call
};

// Runs two steps of a model of two pieces, and compares with eager mode. The second piece is compiled for an input in
// channels-last. Each rank has data of its own.
Followed expect_layouts_followed(RankContext& ctx, double cap_mb, bool trains) {
  const at::AutoGradMode mode(trains);
  at::manual_seed(3);
  torch::nn::Sequential net = four_convolutions(), reference = four_convolutions();
  {
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < 4; ++i) reference->parameters()[i].copy_(net->parameters()[i]);
  }
  const auto backend = std::make_shared<test::LayoutBackend>(test::OutputLayout::ChannelsLast, test::Statement::True);
  DistributedDataParallel ddp(net, ctx.group(), {.bucket_cap_mb = cap_mb});
  DistributedDataParallel eager(reference, ctx.group(), {.bucket_cap_mb = cap_mb});
  auto compiled = compile(ddp, {.backend = backend, .fullgraph = true});
  Followed followed;
  for (int step = 0; step < 2; ++step) {
    const at::Tensor x = at::randn({2, 512, 8, 4}) * (ctx.rank() + 1);
    const at::Tensor found = compiled(x), expected = eager(x);
    followed.compiles.push_back(static_cast<int>(compiled.stats().compiles_in_last_call));
    EXPECT_TRUE(found.allclose(expected, 1e-4, 1e-5));
    EXPECT_EQ(found.strides(), expected.strides());
    if (!trains) continue;
    const auto gradients = gradients_of(net, found), wanted = gradients_of(reference, expected);
    for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_TRUE(gradients[i].allclose(wanted[i], 1e-4, 1e-4)) << i;
  }
  EXPECT_EQ(backend->other_inputs(), 1U);
  followed.stats = compiled.stats();
  return followed;
}

TEST_F(TestSingleProc, test_graph_split_inductor_layout_optimizations_training) {
  on_ranks([this](RankContext& ctx) {
    const auto [stats, compiles] = expect_layouts_followed(ctx, cap_mb(), true);
    expect_listed(stats, compiles, ctx.rank());
  });
}
TEST_F(TestSingleProc, test_graph_split_inductor_layout_optimizations_inference) {
  on_ranks([this](RankContext& ctx) {
    const auto [stats, compiles] = expect_layouts_followed(ctx, cap_mb(), false);
    expect_listed(stats, compiles, ctx.rank());
  });
}

}  // namespace
}  // namespace rehearse::compiler
