// SPDX-License-Identifier: BSD-3-Clause
// For any units, each rank's shards are rows of the parameters and gradients of one process with the whole batch.
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <rehearse/parallel/checkpoint.h>
#include <rehearse/parallel/fsdp.h>

#include "bit_equal.h"
#include "core/parallel/ddp_fixture.h"
#include "core/parallel/fsdp/fsdp_fixture.h"
#include "core/parallel/fsdp/reference_models.h"

namespace {

using namespace rehearse_test;
using rehearse::FullyShardedDataParallel;
using rehearse::FullyShardedOptions;
using rehearse::RankContext;
using rehearse::UnitPolicy;
using rehearse::test::BitEqual;

constexpr int kSteps = 4;

struct Trained {
  std::vector<std::vector<at::Tensor>> gradients;  // of each step
  std::vector<at::Tensor> parameters;
};

std::unique_ptr<torch::optim::Optimizer> optimizer(const std::vector<at::Tensor>& parameters, bool adam) {
  if (adam) return std::make_unique<torch::optim::AdamW>(parameters, torch::optim::AdamWOptions(1e-2));
  return std::make_unique<torch::optim::SGD>(parameters, torch::optim::SGDOptions(0.0625).momentum(0.5));
}

// The reference: one process with the whole batch. Its loss is the mean over ranks of the ranks' summed losses.
Trained one_process(int ranks, bool adam) {
  Mlp net;
  fill(*net);
  Trained result;
  const auto steps = optimizer(net->parameters(), adam);
  for (int step = 0; step < kSteps; ++step) {
    net->zero_grad();
    (net(whole_batch(ranks, step)).square().sum() / ranks).backward();
    result.gradients.push_back(gradient_copies(net->parameters()));
    steps->step();
  }
  result.parameters = copies(net->parameters());
  return result;
}

Trained sharded(RankContext& ctx, const FullyShardedOptions& options, bool adam) {
  Mlp net;
  fill(*net, /*salt=*/7 * ctx.rank());  // only rank 0's values may survive
  FullyShardedDataParallel fsdp(net, ctx.group(), options);
  Trained result;
  const auto steps = optimizer(fsdp.parameters(), adam);
  for (int step = 0; step < kSteps; ++step) {
    fsdp.zero_grad();
    fsdp.forward(batch_of(ctx.rank(), step)).square().sum().backward();
    result.gradients.push_back(gradient_copies(fsdp.parameters()));
    steps->step();
  }
  result.parameters = copies(fsdp.parameters());
  return result;
}

std::vector<at::Tensor> joined(const std::vector<std::vector<at::Tensor>>& by_rank) {
  std::vector<at::Tensor> whole;
  for (std::size_t i = 0; i < by_rank[0].size(); ++i) {
    std::vector<at::Tensor> rows;
    for (const auto& of_rank : by_rank) rows.push_back(of_rank[i]);
    whole.push_back(at::cat(rows));
  }
  return whole;
}

void expect_whole_batch(int ranks, const FullyShardedOptions& options, bool adam) {
  const auto expected = one_process(ranks, adam);
  std::vector<Trained> trained(static_cast<std::size_t>(ranks));
  run_ranks({.ranks = ranks},
            [&](RankContext& ctx) { trained[static_cast<std::size_t>(ctx.rank())] = sharded(ctx, options, adam); });
  for (std::size_t step = 0; step < kSteps; ++step) {
    std::vector<std::vector<at::Tensor>> gradients;
    for (const auto& each : trained) gradients.push_back(each.gradients[step]);
    EXPECT_TRUE(close(joined(gradients), expected.gradients[step])) << "step " << step;
  }
  std::vector<std::vector<at::Tensor>> parameters;
  for (const auto& each : trained) parameters.push_back(each.parameters);
  EXPECT_TRUE(close(joined(parameters), expected.parameters));
}

struct Policy {
  const char* name;
  UnitPolicy units;
};

// Parameters: policy, reshard_after_forward, forward_prefetch, AdamW.
class FsdpTraining : public ::testing::TestWithParam<std::tuple<Policy, std::optional<bool>, bool, bool>> {};

TEST_P(FsdpTraining, EachStep_EqualsOneProcessWithTheWholeBatch) {
  const auto& [policy, reshard, prefetch, adam] = GetParam();
  for (const int ranks : {1, 2, 3, 8}) {
    SCOPED_TRACE(testing::Message() << ranks << " ranks, " << policy.name);
    expect_whole_batch(ranks, {.units = policy.units, .reshard_after_forward = reshard, .forward_prefetch = prefetch},
                       adam);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Options, FsdpTraining,
    ::testing::Combine(::testing::Values(Policy{"root", {}}, Policy{"named", UnitPolicy::named({"first", "third"})},
                                         Policy{"type", UnitPolicy::of_type<torch::nn::LinearImpl>()},
                                         Policy{"size", UnitPolicy::of_size(200)}),
                       ::testing::Values(std::optional<bool>(), std::optional(true), std::optional(false)),
                       ::testing::Bool(), ::testing::Bool()));

// The values are multiples of 1/16, and the numbers of ranks are powers of two, so no sum and no mean rounds.
TEST(FsdpExact, IntegersOnPowersOfTwo_NoRounding) {
  for (const int ranks : {2, 4, 8}) {
    auto net = double_linear(6, 3);
    fill(*net);
    net(whole_batch(ranks, 0)).sum().div(ranks).backward();
    const auto expected = gradient_copies(net->parameters());
    std::vector<std::vector<at::Tensor>> gradients(static_cast<std::size_t>(ranks));
    run_ranks({.ranks = ranks}, [&](RankContext& ctx) {
      auto replica = double_linear(6, 3);
      fill(*replica);
      FullyShardedDataParallel fsdp(replica, ctx.group());
      fsdp(batch_of(ctx.rank(), 0)).sum().backward();
      gradients[static_cast<std::size_t>(ctx.rank())] = gradient_copies(fsdp.parameters());
    });
    EXPECT_THAT(joined(gradients), BitEqual(expected)) << ranks << " ranks";
  }
}

TEST(FsdpUnits, Policies_CutTheModule) {
  run_ranks({.ranks = 2}, [](RankContext& ctx) {
    const auto units_of = [&](UnitPolicy policy) {
      Mlp net;
      std::string text;
      for (const auto& unit : FullyShardedDataParallel(net, ctx.group(), {.units = std::move(policy)}).units()) {
        text += "[" + unit.name + "]";
        for (const auto& name : unit.parameters) text += " " + name;
        text += unit.is_whole ? " whole;" : ";";
      }
      return text;
    };
    const std::string each =
        "[first] first.weight first.bias;[second] second.weight second.bias;[third] third.weight third.bias;";
    EXPECT_EQ(units_of({}), "[] first.weight first.bias second.weight second.bias third.weight third.bias;");
    EXPECT_EQ(units_of(UnitPolicy::of_type<torch::nn::LinearImpl>()), each);
    EXPECT_EQ(units_of(UnitPolicy::of_size(51)), each);  // 112, 272 and 51 elements
    EXPECT_EQ(units_of(UnitPolicy::of_size(200)),
              "[] first.weight first.bias third.weight third.bias;[second] second.weight second.bias;");
    EXPECT_EQ(units_of(UnitPolicy::named({"third"})),
              "[] first.weight first.bias second.weight second.bias;[third] third.weight third.bias;");
  });
}

// Which parameters are frozen in each step: 1 is frozen.
const std::vector<std::string> kFrozen = {"000001", "001100", "001100", "000000", "111110", "000100", "000001"};

// Steps with frozen parameters; even steps change requires_grad of `parameters`, odd ones that of `others`.
template <class Step>
void freeze_and_step(const std::vector<at::Tensor>& parameters, const std::vector<at::Tensor>& others, Step&& step) {
  for (std::size_t i = 0; i < kFrozen.size(); ++i) {
    const auto& changed = i % 2 == 0 ? parameters : others;
    for (std::size_t each = 0; each < changed.size(); ++each)
      at::Tensor(changed[each]).set_requires_grad(kFrozen[i][each] == '0');
    step(static_cast<int>(i));
  }
}

// Staged unfreezing, GANs. One step accumulates its gradients by two backwards.
TEST(FsdpTraining, FrozenBetweenSteps_EqualsOneProcess) {
  for (const int ranks : {1, 2, 3}) {
    std::vector<std::vector<at::Tensor>> expected;
    Mlp alone;
    fill(*alone);
    torch::optim::SGD of_alone(alone->parameters(), 0.0625);
    freeze_and_step(alone->parameters(), alone->parameters(), [&](int step) {
      alone->zero_grad();
      for (const int part : {step, step + (step == 2 ? 1 : 0)})
        (alone(whole_batch(ranks, part)).square().sum() / ranks).backward();
      expected.push_back(gradient_copies(alone->parameters()));
      of_alone.step();
    });
    run_ranks({.ranks = ranks}, [&](RankContext& ctx) {
      Mlp net;
      fill(*net);
      net->third->bias.requires_grad_(false);
      FullyShardedDataParallel fsdp(net, ctx.group(), {.units = UnitPolicy::of_type<torch::nn::LinearImpl>()});
      torch::optim::SGD sgd(fsdp.parameters(), 0.0625);
      freeze_and_step(net->parameters(), fsdp.parameters(), [&](int step) {
        fsdp.zero_grad();
        {
          const auto guard = fsdp.no_sync();
          fsdp(batch_of(ctx.rank(), step)).square().sum().backward();
        }
        fsdp(batch_of(ctx.rank(), step + (step == 2 ? 1 : 0))).square().sum().backward();
        EXPECT_TRUE(close(gradient_copies(fsdp.parameters()), rows_of(expected[static_cast<std::size_t>(step)], ctx)))
            << "step " << step << " of " << ranks << " ranks";
        sgd.step();
      });
    });
  }
}

// Gradients of two parameters of one size must not be added up.
TEST(FsdpTraining, OtherParametersFrozenOnARank_AreAMismatch) {
  const auto verdict_of = [](bool alike) {
    return rehearse::World({.ranks = 2})
        .run([&](RankContext& ctx) {
          torch::nn::Sequential net(torch::nn::Linear(4, 4), torch::nn::Linear(4, 4));
          FullyShardedDataParallel fsdp(net, ctx.group());
          net->parameters()[alike || ctx.rank() == 0 ? 0 : 2].requires_grad_(false);
          fsdp(at::ones({2, 4})).sum().backward();
        })
        .verdict;
  };
  EXPECT_EQ(verdict_of(true), rehearse::Verdict::ok);
  EXPECT_EQ(verdict_of(false), rehearse::Verdict::mismatch);
}

struct WithoutParametersImpl : torch::nn::Module {
  explicit WithoutParametersImpl(double mean) { mean_ = register_buffer("mean", at::full({2}, mean)); }
  at::Tensor forward(const at::Tensor& x) { return x - mean_; }
  at::Tensor mean_;
};
TORCH_MODULE(WithoutParameters);

TEST(FsdpTraining, WithoutParameters_ThereIsNothingToShard) {
  run_ranks({.ranks = 3}, [](RankContext& ctx) {
    FullyShardedDataParallel fsdp(WithoutParameters(ctx.rank()), ctx.group());
    const at::Tensor x = at::ones({4, 2}).requires_grad_();
    const at::Tensor y = fsdp(x);
    EXPECT_THAT(y, BitEqual(at::ones({4, 2})));  // rank 0's buffer
    y.sum().backward();
    EXPECT_THAT(x.grad(), BitEqual(at::ones({4, 2})));
    EXPECT_TRUE(fsdp.units().empty() && fsdp.parameters().empty());
    EXPECT_EQ(fsdp.clip_grad_norm_(1).item<double>(), 0);
    EXPECT_EQ(fsdp.full_state_dict().size(), 1U);
    fsdp.load_full_state_dict(fsdp.full_state_dict());
    fsdp.zero_grad();
  });
}

TEST(FsdpTraining, WithParametersOnSomeRanks_IsAnError) {
  run_ranks({.ranks = 3}, [](RankContext& ctx) {
    torch::nn::Sequential net;
    if (ctx.rank() == 1) net->push_back(torch::nn::Linear(2, 2));
    EXPECT_THAT(error_of<c10::Error>([&] { FullyShardedDataParallel(net, ctx.group()); }),
                testing::HasSubstr("FSDP expects same model across all ranks"));
  });
}

// The forward frees a unit as soon as the next unit begins. When the forward ends, it frees the last unit. The backward
// frees a unit when the unit's gradients are complete.
TEST(FsdpUnits, Memory_IsThereWhileItIsUsed) {
  run_ranks({.ranks = 2}, [](RankContext& ctx) {
    Mlp net;
    FullyShardedDataParallel fsdp(net, ctx.group(), {.units = UnitPolicy::of_type<torch::nn::LinearImpl>()});
    const auto whole = [&] {
      std::string text;
      for (const auto& unit : fsdp.units()) text += unit.is_whole ? '1' : '0';
      return text;
    };
    std::vector<std::string> seen = {whole()};
    const auto output = fsdp.forward_with(
        [&](const at::Tensor& x) {
          auto y = net->first(x).relu();
          seen.push_back(whole());
          y = net->second(y).relu();
          seen.push_back(whole());
          y = net->third(y);
          seen.push_back(whole());
          return y;
        },
        batch_of(ctx.rank(), 0));
    seen.push_back(whole());
    output.square().sum().backward();
    seen.push_back(whole());
    EXPECT_EQ(seen, (std::vector<std::string>{"000", "100", "010", "001", "000", "000"}));
    EXPECT_EQ(net->first->weight.storage().nbytes(), 0u);
  });
}

}  // namespace
