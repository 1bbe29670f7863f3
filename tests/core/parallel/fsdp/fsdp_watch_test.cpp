// SPDX-License-Identifier: BSD-3-Clause
// A world checks a sharded model at each forward and backward, and when the model is destroyed. A failed check names
// the rank that differs. If a parameter differs, the check names the parameter and the row, too.
#include <functional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/optim/sgd.h>

#include "core/parallel/fsdp/fsdp_fixture.h"

namespace {

using namespace rehearse_test;
using rehearse::FullyShardedDataParallel;
using rehearse::RankContext;
using ::testing::HasSubstr;

using Fsdp = FullyShardedDataParallel<Mlp>;

// The mistake that a test makes: code that runs in the second of three steps, at one of these places.
struct Spoils {
  std::function<void(RankContext&, Fsdp&)> in_forward = {}, before_backward = {}, after_step = {};
};

rehearse::Report train(rehearse::WorldOptions options, const Spoils& spoils, const rehearse::FullyShardedOptions& how,
                       const std::vector<std::int64_t>& mesh = {}) {
  rehearse::World world(options);
  return world.run([&](RankContext& ctx) {
    Mlp net;
    fill(*net);
    const auto made = mesh.empty() ? rehearse::fully_shard(net, ctx.group(), how)
                                   : rehearse::fully_shard(net, rehearse::DeviceMesh(ctx, mesh), how);
    Fsdp& fsdp = *made;
    torch::optim::SGD optimizer(fsdp.parameters(), 0.1);
    for (int step = 0; step < 3; ++step) {
      const auto spoil = [&](const std::function<void(RankContext&, Fsdp&)>& by) {
        if (by && step == 1) by(ctx, fsdp);
      };
      fsdp.zero_grad();
      const auto loss = fsdp.forward_with(
          [&](const at::Tensor& x) {
            const auto y = net->second(at::tanh(net->first(x)));
            spoil(spoils.in_forward);
            return net->third(at::tanh(y));
          },
          batch_of(ctx.rank(), step));
      spoil(spoils.before_backward);
      loss.square().mean().backward();
      optimizer.step();
      spoil(spoils.after_step);
    }
  });
}

rehearse::WorldOptions watching(int ranks, bool on = true) {
  rehearse::WorldOptions options;
  options.ranks = ranks;
  options.checks.replicas = on;
  return options;
}

TEST(FsdpWatch, OfAGoodRun_IsSilentAndChangesNothing) {
  for (const bool reshards : {true, false}) {
    const rehearse::FullyShardedOptions how{.units = kEachLinear, .reshard_after_forward = reshards};
    const auto watched = train(watching(3), {}, how);
    EXPECT_EQ(watched.verdict, rehearse::Verdict::ok) << brief(watched);
    EXPECT_EQ(watched.identity, train(watching(3, false), {}, how).identity);
    EXPECT_EQ(watched.checks.at("FSDP on group \"world\""), 3u * 3);  // 3 units in each of 3 steps
    EXPECT_TRUE(watched.remarks.empty());
  }
}

TEST(FsdpWatch, OfAGoodMesh_IsSilentAndLooksAtItsEnd) {
  const auto report = train(watching(4), {}, {.units = kEachLinear}, {2, 2});
  EXPECT_EQ(report.verdict, rehearse::Verdict::ok) << brief(report);
  EXPECT_EQ(report.checks.at("FSDP on group \"mesh.0.0\" at its end"), 1u);
}

TEST(FsdpWatch, LowerPrecision_IsNoDifference) {
  const rehearse::FullyShardedMixedPrecision half{.param_dtype = at::kBFloat16};
  const auto report = train(watching(2), {}, {.units = kEachLinear, .mixed_precision = half});
  EXPECT_EQ(report.verdict, rehearse::Verdict::ok) << brief(report);
  EXPECT_EQ(report.checks.at("FSDP on group \"world\""), 3u * 3);
}

// Rank 1 has rows 6 to 11 of second.weight, counted from 0.
TEST(FsdpWatch, ShardChangedWhileOthersUseIt_IsNamedWithParameterAndRow) {
  const auto report = train(watching(3),
                            {.in_forward =
                                 [](RankContext& ctx, Fsdp& fsdp) {
                                   if (ctx.rank() == 1) fsdp.parameters()[2].data()[3][5] = 8;
                                 }},
                            {.units = kEachLinear});
  EXPECT_EQ(report.verdict, rehearse::Verdict::check_failed);
  EXPECT_THAT(report.headline,
              HasSubstr("rank 1 has a different \"second.weight[6:12]\" than ranks 0,2 (1 of 96 elements, by up to "));
  EXPECT_THAT(report.headline, HasSubstr(" at [3, 5]: 8, not "));
  EXPECT_EQ(report.findings.at(0).ranks, std::vector<int>{1});
}

// Rank 2 writes through a pointer while the whole parameter is in memory.
TEST(FsdpWatch, WholeParameterChangedOnOneRank_IsNamed) {
  const auto report = train(watching(3),
                            {.in_forward =
                                 [](RankContext& ctx, Fsdp& fsdp) {
                                   if (ctx.rank() == 2) fsdp->second->bias.mutable_data_ptr<double>()[1] = 8;
                                 }},
                            {.units = kEachLinear});
  EXPECT_EQ(report.verdict, rehearse::Verdict::check_failed);
  EXPECT_THAT(report.headline,
              HasSubstr("rank 2 has a different \"second.bias[0:6]\" than ranks 0-1 (1 of 6 elements, by up to "));
  EXPECT_THAT(report.headline, HasSubstr(" at [1]: 8, not "));
}

TEST(FsdpWatch, ShardChangedBetweenForwardAndBackward_IsNamed) {
  for (const bool reshards : {true, false}) {
    const auto report = train(watching(3),
                              {.before_backward =
                                   [](RankContext& ctx, Fsdp& fsdp) {
                                     if (ctx.rank() == 1) fsdp.parameters()[2].data()[3][5] = 8;
                                   }},
                              {.units = kEachLinear, .reshard_after_forward = reshards});
    EXPECT_EQ(report.verdict, rehearse::Verdict::check_failed);
    EXPECT_THAT(report.headline,
                HasSubstr("rank 1 has another \"second.weight[6:12]\" of FSDP unit \"second\" in backward than in the "
                          "forward that it belongs to (1 of 96 elements, by up to "));
    EXPECT_THAT(report.headline, HasSubstr(" at [3, 5]: 8, not "));
    EXPECT_EQ(report.findings.at(0).details,
              std::vector<std::string>{"the change counted no version, as writes through data() do not; make an "
                                       "optimizer's step after backward()"});
  }
}

// Changing the shards in place increments their versions. FSDP then refuses a backward that needs the old values.
TEST(FsdpWatch, StepBetweenForwardAndBackward_IsRefusedAsWithoutTheCheck) {
  const auto report = train(watching(2),
                            {.before_backward =
                                 [](RankContext&, Fsdp& fsdp) {
                                   const at::NoGradGuard no_grad;
                                   for (auto& each : fsdp.parameters()) each.mul_(2);
                                 }},
                            {.units = kEachLinear});
  EXPECT_EQ(report.verdict, rehearse::Verdict::rank_failed);
  EXPECT_THAT(report.headline, HasSubstr("were changed between a forward and its backward"));
}

// On a mesh of 3 replicas and 2 shards, ranks 1, 3 and 5 have the same rows.
TEST(FsdpWatch, ReplicasOfAShard_AreComparedAtEachForward) {
  auto options = watching(6);
  options.explain_failures = true;
  const auto report = train(options,
                            {.after_step =
                                 [](RankContext& ctx, Fsdp& fsdp) {
                                   const at::NoGradGuard no_grad;
                                   if (ctx.rank() == 3) fsdp.parameters()[2][7].add_(1);
                                 }},
                            {.units = kEachLinear}, {3, 2});
  EXPECT_EQ(report.verdict, rehearse::Verdict::check_failed);
  EXPECT_THAT(report.headline, HasSubstr("differ in check #3: rank 3 has a different \"second.weight[8:16]\" than "
                                         "ranks 1,5 (16 of 128 elements, by up to 1 at [7, "));
  std::string details;
  for (const auto& line : report.findings.at(0).details) details += line + "\n";
  EXPECT_THAT(details, HasSubstr("aten::add_"));
  EXPECT_THAT(details, HasSubstr("fsdp_watch_test.cpp"));
}

// No forward follows the last step, so only the check at the end can find this difference.
TEST(FsdpWatch, ReplicasOfAShard_AreComparedAtTheEnd) {
  rehearse::World world(watching(6));
  const auto report = world.run([](RankContext& ctx) {
    Mlp net;
    fill(*net);
    Fsdp fsdp(net, rehearse::DeviceMesh(ctx, {3, 2}), {.units = kEachLinear});
    torch::optim::SGD optimizer(fsdp.parameters(), ctx.rank() == 4 ? 0.2 : 0.1);
    fsdp(batch_of(ctx.rank(), 0)).square().mean().backward();
    optimizer.step();
  });
  EXPECT_EQ(report.verdict, rehearse::Verdict::check_failed);
  EXPECT_THAT(report.headline,
              HasSubstr("at its end\" differ in check #1: rank 4 has a different \"first.weight[0:8]\""));
}

TEST(FsdpWatch, Draws_AreComparedAtEachForward) {
  rehearse::WorldOptions options;
  options.ranks = 2;
  options.checks.draws = rehearse::checks::Draws::same;
  const auto report = train(options,
                            {.after_step =
                                 [](RankContext& ctx, Fsdp&) {
                                   if (ctx.rank() == 1) at::rand({17});
                                 }},
                            {});
  EXPECT_EQ(report.verdict, rehearse::Verdict::check_failed);
  EXPECT_THAT(report.headline,
              HasSubstr("in check #3 of \"FSDP on group \"world\"\": rank 1 has drawn 17 numbers more than rank 0"));
}

}  // namespace
