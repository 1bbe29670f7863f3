// SPDX-License-Identifier: BSD-3-Clause
// Parameters without a part in the loss, and how DDP finds them from the outputs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

struct BranchesImpl : torch::nn::Module {
  BranchesImpl()
      : left(register_module("left", double_linear(6, 3))),
        right(register_module("right", double_linear(6, 3))),
        never(register_module("never", double_linear(6, 3))) {}
  at::Tensor forward(const at::Tensor& x, bool go_left) { return go_left ? left(x) : right(x); }
  torch::nn::Linear left, right, never;
};
TORCH_MODULE(Branches);

TEST(DdpUnused, BranchByRank_GradientsOfOthersAndUndefinedInUnusedBranches) {
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

// The loss uses only one of two outputs. The reduction of a step must end all the same, or the next forward would fail.
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
      EXPECT_THAT(error.what(),
                  HasSubstr("(no gradient came for parameters: right.weight, right.bias, never.weight, never.bias of "
                            "DDP bucket 0 of 1 on group \"world\")"));
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

}  // namespace
