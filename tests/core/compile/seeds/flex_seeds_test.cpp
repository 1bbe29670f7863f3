// SPDX-License-Identifier: BSD-3-Clause
// PyTorch's tests of compiled flex attention under DDP.
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>

#include <rehearse/compile/compile.h>
#include <rehearse/compile/flex_attention.h>
#include <rehearse/parallel/distributed_data_parallel.h>

#include "bit_equal.h"
#include "core/compile/seeds/seed_test.h"

namespace rehearse::compiler {
namespace {

using rehearse::test::BitEqual;

using Attention = std::function<at::Tensor(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                           const at::Tensor& bias)>;

at::Tensor alibi_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                           const at::Tensor& bias) {
  return flex_attention(query, key, value, {.score_mod = [bias](const at::Tensor& scores, const ScoreIndices& at) {
                          return scores + bias.index({at.head}) * (at.key - at.query);
                        }});
}

// The module of the seed tests: attention with a bias that grows with the distance of key and query, at another rate in
// each head.
struct AlibiImpl : torch::nn::Module {
  static constexpr std::int64_t kHeadsOfSeed = 12, kWidthOfHead = 8;  // PyTorch's heads are 64 wide

  explicit AlibiImpl(Attention by) : attention(std::move(by)) {}

  at::Tensor forward(const at::Tensor& hidden) {
    const auto heads = [&](const at::Tensor& x) {
      return x.view({hidden.size(0), -1, kHeadsOfSeed, kWidthOfHead}).permute({0, 2, 1, 3});
    };
    const auto query_and_key = project_qk(hidden).chunk(2, 2);
    return attention(heads(query_and_key[0]), heads(query_and_key[1]), heads(project_v(hidden)), bias);
  }

  const Attention attention;
  torch::nn::Linear project_qk =
      register_module("project_qk", torch::nn::Linear(kHeadsOfSeed* kWidthOfHead, 2 * kHeadsOfSeed * kWidthOfHead));
  torch::nn::Linear project_v =
      register_module("project_v", torch::nn::Linear(kHeadsOfSeed* kWidthOfHead, kHeadsOfSeed* kWidthOfHead));
  at::Tensor bias = register_buffer("bias", at::exp2(-8.0 / kHeadsOfSeed * at::arange(1, kHeadsOfSeed + 1)));
};
TORCH_MODULE(Alibi);

struct AlibiRun {
  CompileStats stats;
  Counts counts;
};

// Runs two steps under the real Reducer, compiled and in eager mode. The result and every gradient must be equal, bit
// for bit.
AlibiRun expect_alibi_like_eager(RankContext& ctx, double cap_mb, const Attention& attention) {
  torch::manual_seed(7);
  Alibi net(attention);
  torch::manual_seed(7);
  Alibi reference(&alibi_attention);
  DistributedDataParallel ddp(net, ctx.group(), {.bucket_cap_mb = cap_mb});
  DistributedDataParallel eager(reference, ctx.group(), {.bucket_cap_mb = cap_mb});
  auto compiled = compile(ddp, {.fullgraph = true, .group = ctx.group()});
  Counts counts;
  for (int step = 0; step < 2; ++step) {
    const at::Tensor x = at::randn({2, 32, AlibiImpl::kHeadsOfSeed * AlibiImpl::kWidthOfHead}) * (ctx.rank() + 1);
    const at::Tensor found = compiled(x), expected = eager(x);
    counts.push_back(static_cast<int>(compiled.stats().compiles_in_last_call));
    EXPECT_THAT(found, BitEqual(expected)) << step;
    found.square().sum().backward();
    expected.square().sum().backward();
    const auto parameters = net->parameters(), wanted = reference->parameters();
    for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_THAT(parameters[i].grad(), BitEqual(wanted[i].grad())) << i;
    ddp.zero_grad();
    eager.zero_grad();
  }
  EXPECT_THAT(compiled.explain().pieces().back().text, ::testing::HasSubstr("torch.ops.higher_order.wrap"));
  return {compiled.stats(), counts};
}

TEST_F(TestSingleProc, test_compiled_flex_attention_full_model_ddp) {
  on_ranks([this](RankContext& ctx) {
    const AlibiRun run = expect_alibi_like_eager(ctx, cap_mb(), &alibi_attention);
    expect_listed(run.stats, run.counts, ctx.rank());
  });
}
TEST_F(TestSingleProc, test_compiled_flex_attention_local_ddp) {
  on_ranks([this](RankContext& ctx) {
    const auto attention = std::make_shared<decltype(compile(&alibi_attention))>(compile(&alibi_attention));
    const auto local = [attention](const auto&... tensors) { return (*attention)(tensors...); };
    const AlibiRun run = expect_alibi_like_eager(ctx, cap_mb(), local);
    expect_listed(run.stats, run.counts, ctx.rank());
  });
}

}  // namespace
}  // namespace rehearse::compiler
