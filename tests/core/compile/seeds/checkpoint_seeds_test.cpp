// SPDX-License-Identifier: BSD-3-Clause
// PyTorch's tests of compiled models whose layers are checkpoints.
#include <memory>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <rehearse/compile/compile.h>
#include <rehearse/compile/counting_backend.h>
#include <rehearse/fakes/fake_ddp.h>
#include <rehearse/parallel/checkpoint.h>
#include <rehearse/parallel/distributed_data_parallel.h>

#include "bit_equal.h"
#include "core/compile/seeds/seed_test.h"

namespace rehearse::compiler {
namespace {

using fakes::FakeDDP;
using rehearse::test::BitEqual;
using ::testing::HasSubstr;

void copy_parameters(torch::nn::Module& to, torch::nn::Module& from) {
  const at::NoGradGuard no_grad;
  const auto source = from.parameters();
  for (std::size_t i = 0; i < source.size(); ++i) to.parameters()[i].copy_(source[i]);
}

std::vector<at::Tensor> gradients_of(torch::nn::Module& net) {
  std::vector<at::Tensor> gradients;
  for (at::Tensor& parameter : net.parameters()) {
    gradients.push_back(parameter.grad().clone());
    parameter.mutable_grad().reset();
  }
  return gradients;
}

struct CheckpointedLayersImpl : torch::nn::Module {
  CheckpointedLayersImpl() {
    const std::vector<std::int64_t> widths = {64, 32, 16, 8};
    for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
      layers.push_back(register_module("layer" + std::to_string(i), torch::nn::Linear(widths[i], widths[i + 1])));
    }
  }
  at::Tensor forward(at::Tensor x) {
    for (torch::nn::Linear layer : layers) {
      x = checkpoint([layer](const at::Tensor& h) mutable { return layer(h); }, x);
    }
    return x;
  }
  std::vector<torch::nn::Linear> layers;
};
TORCH_MODULE(CheckpointedLayers);

TEST_F(TestMultiProc, test_ddp_activation_checkpointing) {
  on_ranks([this](RankContext& ctx) {
    at::manual_seed(3);
    CheckpointedLayers net, reference;
    copy_parameters(*reference, *net);
    DistributedDataParallel ddp(net, ctx.group(), {.bucket_cap_mb = cap_mb()});
    DistributedDataParallel eager(reference, ctx.group(), {.bucket_cap_mb = cap_mb()});
    auto compiled = compile(ddp, {.fullgraph = true, .group = ctx.group(), .optimize_ddp = false});
    Counts compiles;
    for (int step = 0; step < 2; ++step) {
      const at::Tensor x = at::randn({10, 64}) * (ctx.rank() + 1);
      const at::Tensor found = compiled(x), expected = eager(x);
      compiles.push_back(static_cast<int>(compiled.stats().compiles_in_last_call));
      EXPECT_THAT(found, BitEqual(expected));
      found.square().sum().backward();
      expected.square().sum().backward();
      const auto gradients = gradients_of(*net), wanted = gradients_of(*reference);
      EXPECT_THAT(gradients, BitEqual(wanted));
    }
    EXPECT_THAT(compiled.explain().pieces().front().text, HasSubstr("checkpoint_2_body"));
    expect_listed(compiled.stats(), compiles, ctx.rank());
  });
}

constexpr std::int64_t kWidth = 1000;

struct TwoLayersImpl : torch::nn::Module {
  TwoLayersImpl()
      : first(register_module("first", torch::nn::Linear(kWidth, kWidth))),
        second(register_module("second", torch::nn::Linear(kWidth, kWidth))) {}
  at::Tensor forward(const at::Tensor& x) { return second(first(x)); }
  torch::nn::Linear first, second;
};
TORCH_MODULE(TwoLayers);

struct TwoHalvesImpl : torch::nn::Module {
  TwoHalvesImpl() : first(register_module("first", TwoLayers())), second(register_module("second", TwoLayers())) {}
  at::Tensor forward(const at::Tensor& x) {
    const auto half = [](TwoLayers layers) { return [layers](const at::Tensor& h) mutable { return layers(h); }; };
    return checkpoint(half(second), checkpoint(half(first), x).cos()).cos();
  }
  TwoLayers first, second;
};
TORCH_MODULE(TwoHalves);

// Compares a training step with eager mode. The parameters of a checkpoint's body are operands of the checkpoint's
// node, so the bucket splitter counts them, and each half is one piece.
template <class Ddp>
CompileStats expect_halves_like_eager(Ddp& ddp, TwoHalves& net, Counts& compiles) {
  const auto counting = std::make_shared<CountingBackend>(make_backend("aot_eager"));
  auto compiled = compile(ddp, {.backend = counting, .fullgraph = true});
  TwoHalves reference;
  copy_parameters(*reference, *net);
  at::Tensor x = at::randn({kWidth, kWidth}).requires_grad_();
  at::Tensor same = x.detach().clone().requires_grad_();
  const at::Tensor found = compiled(x), expected = reference(same);
  compiles.push_back(static_cast<int>(compiled.stats().compiles_in_last_call));
  EXPECT_THAT(found, BitEqual(expected));
  found.sum().backward();
  expected.sum().backward();
  EXPECT_THAT(x.grad(), BitEqual(same.grad()));
  const auto gradients = gradients_of(*net), wanted = gradients_of(*reference);
  EXPECT_THAT(gradients, BitEqual(wanted));
  for (const auto& piece : compiled.explain().pieces()) {
    EXPECT_THAT(piece.text, HasSubstr("tag_activation_checkpoint"));
  }
  return compiled.stats();
}

TEST_F(TestSingleProc, test_higher_order_op) {
  on_ranks([this](RankContext& ctx) {
    at::manual_seed(3);
    TwoHalves net;
    DistributedDataParallel ddp(net, ctx.group(), {.bucket_cap_mb = cap_mb()});
    Counts compiles;
    const CompileStats stats = expect_halves_like_eager(ddp, net, compiles);
    expect_listed(stats, compiles, ctx.rank());
  });
}
TEST_F(TestSingleProcUnderFakeDdp, test_higher_order_op) {
  at::manual_seed(3);
  TwoHalves net;
  FakeDDP<TwoHalves> ddp(net, cap_mb());
  Counts compiles;
  const CompileStats stats = expect_halves_like_eager(ddp, net, compiles);
  expect_listed(stats, compiles);
}

}  // namespace
}  // namespace rehearse::compiler
