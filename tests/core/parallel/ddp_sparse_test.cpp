// SPDX-License-Identifier: BSD-3-Clause
// Gradients of sparse embeddings: each gradient has only the rows that were used.
#include <gtest/gtest.h>

#include <torch/nn/modules/embedding.h>

#include "core/parallel/ddp_fixture.h"

namespace {

using namespace rehearse_test;
using rehearse::DistributedDataParallel;
using rehearse::RankContext;

struct SparseImpl : torch::nn::Module {
  SparseImpl()
      : embedding(register_module("embedding", torch::nn::Embedding(torch::nn::EmbeddingOptions(10, 4).sparse(true)))),
        head(register_module("head", torch::nn::Linear(4, 2))) {
    to(at::kDouble);
  }
  at::Tensor forward(const at::Tensor& tokens) { return head(embedding(tokens)); }
  torch::nn::Embedding embedding;
  torch::nn::Linear head;
};
TORCH_MODULE(Sparse);

TEST(DdpParameters, SparseEmbedding_HasABucketOfItsOwn) {
  run_ranks({.ranks = 2}, [](RankContext& ctx) {
    DistributedDataParallel ddp(Sparse(), ctx.group());
    const auto buckets = ddp.buckets();
    ASSERT_EQ(buckets.size(), 2u);
    EXPECT_EQ(buckets[0].parameters, (std::vector<std::string>{"head.weight", "head.bias"}));
    EXPECT_EQ(buckets[1].parameters, std::vector<std::string>{"embedding.weight"});
    EXPECT_EQ(buckets[1].bytes, 0u);  // no gradient yet
  });
}

// Ranks use different numbers of tokens, and ranks from 2 on use some rows several times. Rank 0 has no tokens at all.
TEST(DdpParameters, SparseEmbedding_GradientsOfTheWholeBatch) {
  const auto tokens_of = [](int rank, int step) { return (at::arange(3 * rank) * (rank + 2) + step).remainder(10); };
  const auto dense = [](const torch::nn::Module& module) {
    std::vector<at::Tensor> gradients;
    for (const auto& parameter : module.parameters()) {
      gradients.push_back(parameter.grad().is_sparse() ? parameter.grad().to_dense() : parameter.grad());
    }
    return gradients;
  };
  for_ranks_and_seeds([&](RankContext& ctx) {
    Sparse net, alone;
    fill(*net, ctx.rank());
    fill(*alone);
    DistributedDataParallel ddp(net, ctx.group());
    for (int step = 0; step < 3; ++step) {
      ddp.zero_grad();
      alone->zero_grad();
      ddp(tokens_of(ctx.rank(), step)).sum().backward();
      for (int rank = 0; rank < ctx.size(); ++rank) {
        (alone(tokens_of(rank, step)).sum() / ctx.size()).backward();
      }
      EXPECT_TRUE(net->embedding->weight.grad().is_sparse());
      EXPECT_TRUE(close(dense(*net), dense(*alone)));
      descend(ddp.parameters(), 0.125);
      descend(alone->parameters(), 0.125);
    }
  });
}

}  // namespace
