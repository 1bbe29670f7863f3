// SPDX-License-Identifier: BSD-3-Clause
// Things that a model's code may do while FSDP gathers and frees its parameters.
#include <string>
#include <vector>

#include <c10/core/InferenceMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <rehearse/parallel/checkpoint.h>

#include "bit_equal.h"
#include "core/parallel/fsdp/fsdp_fixture.h"

namespace {

using namespace rehearse_test;
using rehearse::FullyShardedDataParallel;
using rehearse::FullyShardedOptions;
using rehearse::RankContext;
using rehearse::UnitPolicy;
using rehearse::test::BitEqual;
using ::testing::HasSubstr;

TEST(FsdpCode, TwoForwardsOneBackward_AddUp) {
  const auto loss = [](auto& model, const at::Tensor& x) { return loss_of(model(x)) + loss_of(model(x * 2)); };
  expect_gradients({.units = kEachLinear}, loss, loss);
  expect_gradients({.units = kEachLinear, .reshard_after_forward = false}, loss, loss);
}

TEST(FsdpCode, TwoBackwardsOfOneForward_AddUp) {
  const auto twice = [](auto& model, const at::Tensor& x) {
    auto loss = loss_of(model(x));
    loss.backward({}, /*retain_graph=*/true);
    return loss;
  };
  const auto doubled = [](auto& model, const at::Tensor& x) { return loss_of(model(x)) * 2; };
  expect_gradients({.units = kEachLinear}, twice, doubled);
}

// If shards change between a prefetched all-gather and its use, FSDP gathers again.
TEST(FsdpCode, ShardsChangedInForward_AreSeenByTheUnitsBehind) {
  run_ranks({.ranks = 2}, [](RankContext& ctx) {
    std::vector<at::Tensor> outputs;
    for (const bool prefetches : {false, true}) {
      Mlp net;
      fill(*net);
      FullyShardedDataParallel fsdp(net, ctx.group(), {.units = kEachLinear, .forward_prefetch = prefetches});
      for (int step = 0; step < 2; ++step) {  // the second step prefetches
        const auto halve = [&](const at::Tensor& x) {
          const auto y = net->first(x).tanh();
          const at::NoGradGuard no_grad;
          for (const auto& each : fsdp.parameters()) each.mul_(0.5);
          return net->third(net->second(y).tanh());
        };
        outputs.push_back(fsdp.forward_with(halve, batch_of(ctx.rank(), 0)));
      }
    }
    EXPECT_THAT(outputs[2], BitEqual(outputs[0]));
    EXPECT_THAT(outputs[3], BitEqual(outputs[1]));
  });
}

// The forward uses the changed values, so its backward may use them, too.
TEST(FsdpCode, ShardsChangedBetweenAPrefetchAndItsUse_AreNotStale) {
  run_ranks({.ranks = 2}, [](RankContext& ctx) {
    std::vector<at::Tensor> gradients;
    for (const bool prefetches : {false, true}) {
      Mlp net;
      fill(*net);
      FullyShardedDataParallel fsdp(net, ctx.group(), {.units = kEachLinear, .forward_prefetch = prefetches});
      const auto halve = [&](const at::Tensor& x) {
        const auto y = net->first(x).tanh().detach().requires_grad_();
        const at::NoGradGuard no_grad;
        for (const auto& each : fsdp.parameters()) each.mul_(0.5);
        const at::AutoGradMode with_grad(true);
        return net->third(net->second(y).tanh());
      };
      for (int step = 0; step < 2; ++step) loss_of(fsdp.forward_with(halve, batch_of(ctx.rank(), 0))).backward();
      gradients.push_back(fsdp.parameters().back().grad());
    }
    EXPECT_THAT(gradients[0], BitEqual(gradients[1]));
  });
}

TEST(FsdpCode, UnitInsideOfUnit_StaysWholeAroundIt) {
  struct OuterImpl : torch::nn::Module {
    OuterImpl()
        : inner(register_module("inner", Mlp())), scale(register_parameter("scale", at::ones({3}, at::kDouble))) {}
    at::Tensor forward(const at::Tensor& x) { return inner(x * scale.sum()) * scale; }
    Mlp inner;
    at::Tensor scale;
  };
  struct ModelImpl : torch::nn::Module {
    ModelImpl() : outer(register_module("outer", std::make_shared<OuterImpl>())) {}
    at::Tensor forward(const at::Tensor& x) { return outer->forward(x); }
    std::shared_ptr<OuterImpl> outer;
  };
  for (const int ranks : {2, 3}) {
    run_ranks({.ranks = ranks}, [](RankContext& ctx) {
      const auto whole = std::make_shared<ModelImpl>(), net = std::make_shared<ModelImpl>();
      fill(*whole);
      fill(*net);
      FullyShardedDataParallel fsdp(net, ctx.group(), {.units = UnitPolicy::named({"outer", "outer.inner"})});
      loss_of(whole->forward(batch_of(0, 0))).backward();
      loss_of(fsdp(batch_of(0, 0))).backward();
      EXPECT_TRUE(close(gradient_copies(fsdp.parameters()), rows_of(gradient_copies(whole->parameters()), ctx)));
    });
  }
}

// A view that the module made at construction shares the memory that FSDP frees and fills.
TEST(FsdpCode, ViewsAndListsOfParameters_FindThem) {
  struct ViewingImpl : torch::nn::Module {
    ViewingImpl()
        : left(register_parameter("left", at::zeros({4, 3}, at::kDouble))),
          right(register_parameter("right", at::zeros({5, 3}, at::kDouble))),
          turned(left.t()) {}
    at::Tensor forward(const at::Tensor& x) {
      return at::matmul(x, turned).sum() + at::cat({left, right}).square().sum() + at::stack({left, left * 2}).sum();
    }
    at::Tensor left, right, turned;
  };
  run_ranks({.ranks = 2}, [](RankContext& ctx) {
    const auto whole = std::make_shared<ViewingImpl>(), net = std::make_shared<ViewingImpl>();
    fill(*whole);
    fill(*net);
    FullyShardedDataParallel fsdp(net, ctx.group());
    const auto x = values({2, 3}, 9);
    const auto expected = whole->forward(x), result = fsdp(x);
    EXPECT_THAT(result, BitEqual(expected));
    expected.backward();
    result.backward();
    EXPECT_TRUE(close(gradient_copies(fsdp.parameters()), rows_of(gradient_copies(whole->parameters()), ctx)));
  });
}

TEST(FsdpCode, OperatorOnParametersOfSeveralUnits_HasThemAll) {
  const auto loss = [](Mlp& net, const at::Tensor& x) {
    std::vector<at::Tensor> flat;
    for (const auto& each : net->parameters()) flat.push_back(each.flatten());
    std::vector<at::Tensor> norms = at::_foreach_norm(net->parameters(), 2);
    return net(x).square().sum() + at::cat(flat).square().sum() + at::stack(norms).sum() +
           at::addmm(net->second->bias, x, net->first->weight.t()).sum();
  };
  expect_gradients(
      {.units = kEachLinear},
      [&](auto& fsdp, const at::Tensor& x) {
        return fsdp.forward_with([&](const at::Tensor& input) { return loss(fsdp.net(), input); }, x);
      },
      loss);
}

TEST(FsdpCode, NoGradAndInferenceMode_ComputeTheSame) {
  run_ranks({.ranks = 3}, [](RankContext& ctx) {
    Mlp whole, net;
    fill(*whole);
    fill(*net);
    FullyShardedDataParallel fsdp(net, ctx.group(), {.units = kEachLinear});
    const auto x = batch_of(ctx.rank(), 0);
    const auto expected = whole(x).detach();
    for (int i = 0; i < 2; ++i) {
      {
        const at::NoGradGuard no_grad;
        EXPECT_THAT(fsdp(x), BitEqual(expected));
      }
      {
        const c10::InferenceMode inference;
        EXPECT_THAT(fsdp(x), BitEqual(expected));
      }
      for (const auto& unit : fsdp.units()) EXPECT_FALSE(unit.is_whole);
      const auto trained = fsdp(x);
      EXPECT_THAT(trained, BitEqual(expected));
      loss_of(trained).backward();
    }
  });
}

// An optimizer's step follows a forward without a backward. The root unit must not keep its old values.
TEST(FsdpCode, StepBehindAForwardAlone_IsSeenByTheNext) {
  run_ranks({.ranks = 2}, [](RankContext& ctx) {
    Mlp net;
    fill(*net);
    FullyShardedDataParallel fsdp(net, ctx.group(), {.reshard_after_forward = false});
    const auto x = batch_of(0, 0);
    const auto before = fsdp(x).detach();
    {
      const at::NoGradGuard no_grad;
      for (auto& shard : fsdp.parameters()) shard.mul_(2);
    }
    Mlp doubled;
    fill(*doubled);
    {
      const at::NoGradGuard no_grad;
      for (auto& each : doubled->parameters()) each.mul_(2);
    }
    const auto after = fsdp(x).detach();
    EXPECT_THAT(after, BitEqual(doubled(x)));
    EXPECT_FALSE(at::equal(after, before));
  });
}

TEST(FsdpCode, CheckpointInsideUnits_SameGradients) {
  const auto plain = [](auto& model, const at::Tensor& x) { return loss_of(model(x)); };
  const auto checkpointed = [](auto& model, const at::Tensor& x) {
    return loss_of(model.forward_with(
        [&](const at::Tensor& input) {
          auto& net = model.net();
          const auto first = [net](const at::Tensor& h) mutable { return net->second(net->first(h).relu()).relu(); };
          const auto second = [net](const at::Tensor& h) mutable { return net->third(h); };
          return rehearse::checkpoint(second, rehearse::checkpoint(first, input));
        },
        x));
  };
  expect_gradients({.units = kEachLinear}, checkpointed, plain);
  expect_gradients({}, checkpointed, plain);
}

TEST(FsdpCode, ParametersWithoutGradient_AreLeftAlone) {
  run_ranks({.ranks = 2}, [](RankContext& ctx) {
    Mlp net, whole;
    fill(*net);
    fill(*whole);
    FullyShardedDataParallel fsdp(net, ctx.group(), {.units = kEachLinear});
    const auto code = [](Mlp& of, const at::Tensor& x) {
      return at::linear(of->first(x), of->second->weight).square().sum();  // not `second`'s bias, and not `third`
    };
    code(whole, batch_of(0, 0)).backward();
    fsdp.forward_with([&](const at::Tensor& x) { return code(net, x); }, batch_of(0, 0)).backward();
    EXPECT_TRUE(close(gradient_copies(fsdp.parameters()),
                      {rows_of({whole->first->weight.grad(), whole->first->bias.grad()}, ctx)[0],
                       rows_of({whole->first->bias.grad()}, ctx)[0], rows_of({whole->second->weight.grad()}, ctx)[0],
                       at::Tensor(), at::Tensor(), at::Tensor()}));
  });
}

TEST(FsdpCode, GradientOfAnInput_NeedsNoReduction) {
  run_ranks({.ranks = 2}, [](RankContext& ctx) {
    Mlp net, whole;
    fill(*net);
    fill(*whole);
    FullyShardedDataParallel fsdp(net, ctx.group(), {.units = kEachLinear});
    const auto gradient_of = [&](auto& model) {
      const auto x = batch_of(ctx.rank(), 0).requires_grad_();
      return torch::autograd::grad({loss_of(model(x))}, {x})[0];
    };
    EXPECT_THAT(gradient_of(fsdp), BitEqual(gradient_of(whole)));
    for (const auto& shard : fsdp.parameters()) EXPECT_FALSE(shard.grad().defined());
    for (const auto& unit : fsdp.units()) EXPECT_FALSE(unit.is_whole);
  });
}

// FSDP prefetches the units in the order of the previous forward. A changed order costs only memory and time.
TEST(FsdpCode, OrderThatChanges_PrefetchesInVain) {
  run_ranks({.ranks = 3}, [](RankContext& ctx) {
    Mlp net, whole;
    fill(*net);
    fill(*whole);
    FullyShardedDataParallel fsdp(net, ctx.group(), {.units = kEachLinear});
    const auto code = [](Mlp& of, const at::Tensor& x, int step) {
      auto y = of->first(x);
      if (step % 2 == 0) y = of->second(y);
      y = of->third(y);
      return loss_of(step == 3 ? at::matmul(y, of->third->weight) + of->first->bias : y);
    };
    for (int step = 0; step < 5; ++step) {
      fsdp.zero_grad();
      whole->zero_grad();
      code(whole, batch_of(0, step), step).backward();
      fsdp.forward_with([&](const at::Tensor& x) { return code(net, x, step); }, batch_of(0, step)).backward();
      auto expected = gradient_copies(whole->parameters());
      for (auto& each : expected) {
        if (each.defined()) each = rows_of({each}, ctx)[0];
      }
      EXPECT_TRUE(close(gradient_copies(fsdp.parameters()), expected)) << step;
      for (const auto& unit : fsdp.units()) EXPECT_FALSE(unit.is_whole);
    }
  });
}

TEST(FsdpCode, TwoModelsInOneGraph_BothAreReduced) {
  run_ranks({.ranks = 2}, [](RankContext& ctx) {
    Mlp inner, whole_inner;
    auto outer = double_linear(3, 4), whole_outer = double_linear(3, 4);
    for (auto* each : {inner.get(), whole_inner.get()}) fill(*each);
    for (auto* each : {outer.get(), whole_outer.get()}) fill(*each, 9);
    FullyShardedDataParallel first(inner, ctx.group(), {.units = kEachLinear});
    FullyShardedDataParallel second(outer, ctx.group());
    for (int step = 0; step < 2; ++step) {
      first.zero_grad();
      second.zero_grad();
      loss_of(second(first(batch_of(0, step)))).backward();
      whole_inner->zero_grad();
      whole_outer->zero_grad();
      loss_of(whole_outer(whole_inner(batch_of(0, step)))).backward();
      EXPECT_TRUE(close(gradient_copies(first.parameters()), rows_of(gradient_copies(whole_inner->parameters()), ctx)));
      EXPECT_TRUE(
          close(gradient_copies(second.parameters()), rows_of(gradient_copies(whole_outer->parameters()), ctx)));
    }
  });
}

TEST(FsdpCode, SeedsAndSchedulers_SameBits) {
  std::vector<std::vector<at::Tensor>> first(3);
  const auto train_with = [&](rehearse::WorldOptions options) {
    options.ranks = 3;
    run_ranks(options, [&](RankContext& ctx) {
      Mlp net(6, 16, 3, at::kFloat);
      fill(*net);
      FullyShardedDataParallel fsdp(net, ctx.group(), {.units = kEachLinear});
      for (int step = 0; step < 3; ++step) {
        fsdp.zero_grad();
        fsdp(at::sin(batch_of(ctx.rank(), step).to(at::kFloat) * 3.3)).square().mean().backward();
        fsdp.clip_grad_norm_(0.1);
        descend(fsdp.parameters(), 0.1);
      }
      auto& expected = first[static_cast<std::size_t>(ctx.rank())];
      if (expected.empty()) expected = copies(fsdp.parameters());
      EXPECT_THAT(copies(fsdp.parameters()), BitEqual(expected)) << "rank " << ctx.rank();
    });
  };
  train_with({.schedule = rehearse::Schedule::round_robin});
  for (std::uint64_t seed = 1; seed <= 12; ++seed) train_with({.seed = seed, .preempt = seed % 2 == 0});
}

// The errors give no advice that needs the FullyShardedDataParallel.
TEST(FsdpCode, UsedWhenItsModelIsGone_IsRefused) {
  run_ranks({.ranks = 2}, [](RankContext& ctx) {
    Mlp net;
    const auto gone = [](const std::string& what) {
      return HasSubstr("FSDP: " + what +
                       " parameter \"first.weight\" of unit \"first\" is asked for its elements, which "
                       "are not here: the FullyShardedDataParallel that sharded it is gone. Keep it for as long as the "
                       "module is used, or load its full_state_dict() into another module before");
    };
    at::Tensor loss;
    {
      FullyShardedDataParallel fsdp(net, ctx.group(), {.units = kEachLinear});
      loss = fsdp(batch_of(0, 0)).sum();
    }
    EXPECT_THAT(error_of<c10::Error>([&] { net->first->weight.const_data_ptr<double>(); }), gone("the"));
    EXPECT_THAT(error_of<c10::Error>([&] { net->forward(batch_of(0, 0)); }),  // first.bias is read first
                HasSubstr("the FullyShardedDataParallel that sharded it is gone"));
    EXPECT_THAT(error_of<c10::Error>([&] { net->first->weight.grad().clone(); }), gone("the gradient of"));
    EXPECT_THAT(error_of<c10::Error>([&] { loss.backward(); }),
                HasSubstr("the FullyShardedDataParallel that sharded it is gone"));
  });
}

}  // namespace
