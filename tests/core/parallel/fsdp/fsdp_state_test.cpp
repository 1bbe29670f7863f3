// SPDX-License-Identifier: BSD-3-Clause
// State dicts: the whole model's values, and loading them into groups of other sizes.
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/optim/adamw.h>

#include "core/parallel/fsdp/fsdp_fixture.h"

namespace {

using namespace rehearse_test;
using rehearse::FullyShardedDataParallel;
using rehearse::NamedTensors;
using rehearse::RankContext;
using rehearse::SavedRows;
using rehearse::UnitPolicy;

// Has a parameter with fewer rows than ranks, numbers of rows that the ranks cannot share evenly, and buffers.
struct MixedImpl : torch::nn::Module {
  MixedImpl()
      : wide(register_module("wide", torch::nn::Linear(6, 7))),
        norm(register_module("norm", torch::nn::BatchNorm1d(7))),
        narrow(register_module("narrow", torch::nn::Linear(7, 1))) {
    to(at::kDouble);
  }
  at::Tensor forward(const at::Tensor& x) { return narrow(norm(wide(x)).relu()); }

  torch::nn::Linear wide;
  torch::nn::BatchNorm1d norm;
  torch::nn::Linear narrow;
};
TORCH_MODULE(Mixed);

const UnitPolicy kUnits = UnitPolicy::named({"wide", "narrow"});

NamedTensors state_of(const torch::nn::Module& module) {
  NamedTensors state;
  for (const auto& item : module.named_parameters()) state.emplace_back(item.key(), item.value().detach().clone());
  for (const auto& item : module.named_buffers()) state.emplace_back(item.key(), item.value().detach().clone());
  return state;
}

std::map<std::string, at::Tensor> by_name(const NamedTensors& state) { return {state.begin(), state.end()}; }

::testing::AssertionResult same_state(const NamedTensors& a, const NamedTensors& b) {
  const auto first = by_name(a), second = by_name(b);
  if (first.size() != second.size()) return ::testing::AssertionFailure() << first.size() << " and " << second.size();
  for (const auto& [name, tensor] : first) {
    if (!second.contains(name)) return ::testing::AssertionFailure() << name << " is missing";
    const std::string difference = rehearse::test::bit_difference(tensor, second.at(name));
    if (!difference.empty()) return ::testing::AssertionFailure() << name << ' ' << difference;
  }
  return ::testing::AssertionSuccess();
}

TEST(FsdpState, FullStateDict_IsTheModules) {
  for (const int ranks : {1, 2, 3, 8}) {
    run_ranks({.ranks = ranks}, [](RankContext& ctx) {
      Mixed net;
      fill(*net);
      const auto whole = state_of(*net);
      FullyShardedDataParallel fsdp(net, ctx.group(), {.units = kUnits});
      EXPECT_TRUE(same_state(fsdp.full_state_dict(), whole));
    });
  }
}

TEST(FsdpState, FullStateDict_LoadsIntoGroupsOfOtherSizes) {
  NamedTensors saved;
  run_ranks({.ranks = 3}, [&](RankContext& ctx) {
    Mixed net;
    fill(*net, 5);
    FullyShardedDataParallel fsdp(net, ctx.group(), {.units = kUnits});
    auto state = fsdp.full_state_dict();
    if (ctx.rank() == 1) saved = std::move(state);
  });
  for (const int ranks : {1, 2, 8}) {
    run_ranks({.ranks = ranks}, [&](RankContext& ctx) {
      Mixed net;
      fill(*net, 77);
      FullyShardedDataParallel fsdp(net, ctx.group());
      fsdp.load_full_state_dict(saved);
      EXPECT_TRUE(same_state(fsdp.full_state_dict(), saved));
    });
  }
}

TEST(FsdpState, ShardedStateDict_LoadsIntoGroupsOfOtherSizes) {
  Mixed original;
  fill(*original, 5);
  const auto whole = state_of(*original);
  for (const int from : {1, 2, 3, 8}) {
    std::vector<std::vector<SavedRows>> saved(static_cast<std::size_t>(from));
    run_ranks({.ranks = from}, [&](RankContext& ctx) {
      Mixed net;
      fill(*net, 5);
      FullyShardedDataParallel fsdp(net, ctx.group(), {.units = kUnits});
      saved[static_cast<std::size_t>(ctx.rank())] = fsdp.sharded_state_dict();
    });
    std::vector<SavedRows> all;
    for (const auto& of_rank : saved) all.insert(all.end(), of_rank.begin(), of_rank.end());
    for (const int to : {1, 2, 3, 8}) {
      run_ranks({.ranks = to}, [&](RankContext& ctx) {
        Mixed net;
        fill(*net, 77);
        FullyShardedDataParallel fsdp(net, ctx.group());
        fsdp.load_sharded_state_dict(all);
        EXPECT_TRUE(same_state(fsdp.full_state_dict(), whole)) << from << " to " << to;
      });
    }
  }
}

// Two steps on 3 ranks, and then two more on 2 ranks, give the parameters of four steps of one process with the same
// batches.
TEST(FsdpState, OptimizerState_MovesToAnotherNumberOfRanks) {
  const auto step_of = [](auto& model, auto& optimizer, const at::Tensor& batch) {
    model.zero_grad();
    model.forward(batch).square().mean().backward();
    optimizer.step();
  };
  Mlp whole;
  fill(*whole);
  torch::optim::AdamW reference(whole->parameters(), torch::optim::AdamWOptions(1e-2));
  for (int i = 0; i < 4; ++i) step_of(*whole, reference, batch_of(0, i));

  NamedTensors parameters, averages, squares;
  run_ranks({.ranks = 3}, [&](RankContext& ctx) {
    Mlp net;
    fill(*net);
    FullyShardedDataParallel fsdp(net, ctx.group());
    torch::optim::AdamW optimizer(fsdp.parameters(), torch::optim::AdamWOptions(1e-2));
    for (int i = 0; i < 2; ++i) step_of(fsdp, optimizer, batch_of(0, i));
    auto state = fsdp.full_state_dict();
    NamedTensors first, second;
    for (const auto& [name, shard] : fsdp.named_parameters()) {
      auto& own = static_cast<torch::optim::AdamWParamState&>(*optimizer.state().at(shard.unsafeGetTensorImpl()));
      first.emplace_back(name, fsdp.gather_like(name, own.exp_avg()));
      second.emplace_back(name, fsdp.gather_like(name, own.exp_avg_sq()));
    }
    if (ctx.rank() != 0) return;
    parameters = std::move(state);
    averages = std::move(first);
    squares = std::move(second);
  });
  run_ranks({.ranks = 2}, [&](RankContext& ctx) {
    Mlp net;
    FullyShardedDataParallel fsdp(net, ctx.group());
    fsdp.load_full_state_dict(parameters);
    torch::optim::AdamW optimizer(fsdp.parameters(), torch::optim::AdamWOptions(1e-2));
    for (std::size_t i = 0; i < averages.size(); ++i) {
      auto own = std::make_unique<torch::optim::AdamWParamState>();
      own->step(2);
      own->exp_avg(fsdp.rows_like(averages[i].first, averages[i].second));
      own->exp_avg_sq(fsdp.rows_like(squares[i].first, squares[i].second));
      optimizer.state()[fsdp.parameters()[i].unsafeGetTensorImpl()] = std::move(own);
    }
    for (int i = 2; i < 4; ++i) step_of(fsdp, optimizer, batch_of(0, i));
    const auto result = by_name(fsdp.full_state_dict());
    for (const auto& item : whole->named_parameters())
      EXPECT_TRUE(at::allclose(result.at(item.key()), item.value(), 1e-12, 1e-12)) << item.key();
  });
}

TEST(FsdpState, StateOfAnotherModule_IsRefusedAndNothingChanges) {
  run_ranks({.ranks = 2}, [](RankContext& ctx) {
    auto net = double_linear(6, 4);
    fill(*net);
    FullyShardedDataParallel fsdp(net, ctx.group());
    const auto before = fsdp.full_state_dict();
    const auto refusal = [&](NamedTensors state) {
      return error_of<c10::ValueError>([&] { fsdp.load_full_state_dict(state); });
    };
    const auto weight = at::zeros({4, 6}, at::kDouble), bias = at::zeros({4}, at::kDouble);
    EXPECT_THAT(refusal({{"weight", weight}}),
                ::testing::HasSubstr("FSDP: load_full_state_dict() lacks \"bias\" of the module"));
    EXPECT_THAT(refusal({{"weight", weight}, {"bias", bias}, {"scale", bias}}),
                ::testing::HasSubstr("FSDP: load_full_state_dict() has \"scale\", but the module has no parameter or "
                                     "buffer of that name"));
    EXPECT_THAT(refusal({{"weight", weight}, {"bias", at::zeros({5}, at::kDouble)}}),
                ::testing::HasSubstr("FSDP: load_full_state_dict() has \"bias\" of sizes [5]; the module's has [4]"));
    EXPECT_THAT(refusal({{"weight", weight}, {"bias", bias}, {"weight", weight}}),
                ::testing::HasSubstr("FSDP: load_full_state_dict() has \"weight\" twice"));
    std::vector<SavedRows> rows = fsdp.sharded_state_dict();
    auto twice = rows;
    twice.push_back({"bias", {4}, 2 * ctx.rank(), bias.narrow(0, 0, 2) + 9});
    EXPECT_THAT(error_of<c10::ValueError>([&] { fsdp.load_sharded_state_dict(twice); }),
                ::testing::HasSubstr("FSDP: load_sharded_state_dict() has row " + std::to_string(2 * ctx.rank()) +
                                     " of \"bias\" twice, with other values"));
    rows[0].rows = rows[0].rows.narrow(0, 0, 1);
    EXPECT_THAT(error_of<c10::ValueError>([&] { fsdp.load_sharded_state_dict(rows); }),
                ::testing::HasSubstr("FSDP: load_sharded_state_dict() lacks row " + std::to_string(2 * ctx.rank() + 1) +
                                     " of \"weight\". Give it what every rank of the group has saved"));
    rows[0].first_row = 4;
    EXPECT_THAT(error_of<c10::ValueError>([&] { fsdp.load_sharded_state_dict(rows); }),
                ::testing::HasSubstr("FSDP: rows 4 to 5 of \"weight\" have sizes [1, 6]; the whole has [4, 6]"));
    EXPECT_TRUE(same_state(fsdp.full_state_dict(), before));
  });
}

}  // namespace
