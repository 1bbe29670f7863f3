// SPDX-License-Identifier: BSD-3-Clause
// Models that ask more of DDP than a chain of layers: branches, shared and frozen parameters, buffers,
// layouts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/embedding.h>

#include "core/parallel/ddp_fixture.h"

namespace user {

struct Prediction {
  at::Tensor value;
  std::map<std::string, std::vector<at::Tensor>> more;
};
template <class Visit>
void visit_tensors(Prediction& prediction, Visit&& visit) {
  visit(prediction.value);
  visit(prediction.more);
}

}  // namespace user

namespace {

using namespace rehearse_test;
using rehearse::DistributedDataParallel;
using rehearse::RankContext;
using ::testing::HasSubstr;

torch::nn::Linear double_linear(int inputs, int outputs) {
  torch::nn::Linear linear(inputs, outputs);
  linear->to(at::kDouble);
  return linear;
}

struct BranchesImpl : torch::nn::Module {
  BranchesImpl()
      : left(register_module("left", double_linear(6, 3))),
        right(register_module("right", double_linear(6, 3))),
        never(register_module("never", double_linear(6, 3))) {}
  at::Tensor forward(const at::Tensor& x, bool go_left) { return go_left ? left(x) : right(x); }
  torch::nn::Linear left, right, never;
};
TORCH_MODULE(Branches);

TEST(DdpUnused, BranchByRank_GradientsOfOthersAndUndefinedWhereNobodyWent) {
  constexpr int kRanks = 5;
  for (const bool views : {false, true}) {
    for (const std::uint64_t seed : {1, 2, 3}) {
      run_ranks({.ranks = kRanks, .seed = seed}, [&](RankContext& ctx) {
        Branches net;
        fill(*net, ctx.rank());
        DistributedDataParallel ddp(
            net, ctx.group(),
            {.bucket_cap_mb = 0.0001, .gradient_as_bucket_view = views, .find_unused_parameters = true});
        for (int step = 0; step < 4; ++step) {
          ddp.zero_grad();
          ddp(batch_of(ctx.rank(), step), (ctx.rank() + step) % 2 == 0).sum().backward();

          Branches alone;
          fill(*alone);
          for (int rank = 0; rank < kRanks; ++rank) {
            (alone(batch_of(rank, step), (rank + step) % 2 == 0).sum() / kRanks).backward();
          }
          EXPECT_TRUE(close(gradient_copies(ddp.parameters()), gradient_copies(alone->parameters())));
          EXPECT_FALSE(net->never->weight.grad().defined());
        }
      });
    }
  }
}

// Without the common node behind the outputs, the second forward would find an unfinished reduction.
TEST(DdpUnused, OutputLeftOutOfLoss_NextIterationWorks) {
  struct TwoHeads : torch::nn::Module {
    TwoHeads() : a(register_module("a", double_linear(6, 1))), b(register_module("b", double_linear(6, 1))) {}
    std::pair<at::Tensor, at::Tensor> forward(const at::Tensor& x) { return {a(x), b(x)}; }
    torch::nn::Linear a, b;
  };
  run_ranks({.ranks = 3}, [](RankContext& ctx) {
    auto net = std::make_shared<TwoHeads>();
    DistributedDataParallel ddp(net, ctx.group(), {.find_unused_parameters = true});
    for (int step = 0; step < 3; ++step) {
      ddp.zero_grad();
      ddp.forward(batch_of(ctx.rank(), step)).first.sum().backward();
      EXPECT_TRUE(net->a->weight.grad().defined());
      EXPECT_FALSE(net->b->weight.grad().defined());
    }
  });
}

TEST(DdpUnused, NotAskedToFind_SecondForwardNamesParametersAndRank) {
  run_ranks({.ranks = 2}, [](RankContext& ctx) {
    Branches net;
    DistributedDataParallel ddp(net, ctx.group());
    ddp(batch_of(ctx.rank(), 0), true).sum().backward();
    try {
      ddp(batch_of(ctx.rank(), 1), true);
      ADD_FAILURE() << "no error";
    } catch (const c10::Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("Expected to have finished reduction in the prior iteration"));
      EXPECT_THAT(error.what(), HasSubstr("for rank " + std::to_string(ctx.rank()) + ": 2 3 4 5"));
      EXPECT_THAT(error.what(), HasSubstr("parameters: right.weight, right.bias, never.weight, never.bias"));
    }
  });
}

TEST(DdpOutputs, UserStructWithNestedContainers_TrackedWhenUnusedAreSought) {
  struct Net : torch::nn::Module {
    Net() : a(register_module("a", double_linear(6, 2))), b(register_module("b", double_linear(6, 2))) {}
    user::Prediction forward(const at::Tensor& x) { return {x.sum(), {{"heads", {a(x), b(x)}}}}; }
    torch::nn::Linear a, b;
  };
  run_ranks({.ranks = 4}, [](RankContext& ctx) {
    auto net = std::make_shared<Net>();
    fill(*net);
    DistributedDataParallel ddp(net, ctx.group(), {.find_unused_parameters = true});
    for (int step = 0; step < 3; ++step) {
      ddp.zero_grad();
      const auto heads = ddp(batch_of(ctx.rank(), step)).more.at("heads");
      (heads[0] * 3 + heads[1]).sum().backward();
      auto alone = std::make_shared<Net>();
      fill(*alone);
      const auto whole = alone->forward(whole_batch(4, step)).more.at("heads");
      ((whole[0] * 3 + whole[1]).sum() / 4).backward();
      EXPECT_TRUE(close(gradient_copies(ddp.parameters()), gradient_copies(alone->parameters())));
    }
  });
}

// Keeps what its buffer was when forward began: after DDP's broadcast, before the module's own update.
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
      EXPECT_TRUE(at::equal(before_last[rank], after_first[broadcast ? 0 : rank]));
    }
  }
}

// PyTorch's require_forward_param_sync.
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

// One tensor, the parameter of two modules.
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

// Trains `Net` on `ranks` ranks and in one process, and compares gradients after each of three steps.
template <class Net>
void expect_gradients_of_whole_batch(const rehearse::DistributedDataParallelOptions& options = {},
                                     int ranks = 3) {
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
      : base(register_module("base", double_linear(6, 5))),
        head(register_module("head", double_linear(5, 2))) {
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
    EXPECT_EQ(same_bits(before, net->parameters()), ctx.rank() == 0);
    ASSERT_EQ(ddp.buckets().size(), 1u);
    EXPECT_EQ(ddp.buckets()[0].parameters, (std::vector<std::string>{"head.weight", "head.bias"}));
  });
}

// A transposed parameter (dense, other strides), and one with gaps in its memory.
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

struct SparseImpl : torch::nn::Module {
  SparseImpl()
      : embedding(register_module("embedding",
                                  torch::nn::Embedding(torch::nn::EmbeddingOptions(10, 4).sparse(true)))),
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

// Each rank touches other rows, some of them twice; rank 0 of five has no tokens at all.
TEST(DdpParameters, SparseEmbedding_GradientsOfTheWholeBatch) {
  const auto tokens_of = [](int rank, int step) {
    return (at::arange(3 * rank) * (rank + 2) + step).remainder(10);
  };
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
