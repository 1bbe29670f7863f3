// SPDX-License-Identifier: BSD-3-Clause
// Contract: a rank that has loaded a checkpoint compares its state with what it had saved, in the same world or in
// another one.
#include <sstream>

#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/serialize/archive.h>

#include <rehearse/parallel/distributed_data_parallel.h>
#include <rehearse/parallel/fsdp.h>

#include "checked_world.h"

namespace checks_test {
namespace {

// What a job saves: its records, and what the ranks wrote.
struct Saved {
  std::vector<std::string> records = std::vector<std::string>(4);
  std::vector<std::string> files = std::vector<std::string>(4);
};

struct Job {
  torch::nn::Sequential net{torch::nn::Linear(3, 4), torch::nn::BatchNorm1d(4), torch::nn::Linear(4, 1)};
  torch::optim::Adam optimizer{net->parameters(), torch::optim::AdamOptions(1e-2)};
  std::int64_t place = 0;

  void step(RankContext& ctx) {
    optimizer.zero_grad();
    net->forward(at::rand({4, 3}) + ctx.rank() + place++).pow(2).mean().backward();
    for (auto& parameter : net->parameters()) ctx.group().allreduce(parameter.mutable_grad())->wait();
    optimizer.step();
  }
  std::vector<checks::ModelState> parts(RankContext& ctx) const {
    return {net, optimizer, {{"generator", ctx.generator().get_state()}, {"place", at::tensor(place)}}};
  }
};

Saved save(int ranks = 4) {
  Saved saved;
  run(
      [&](RankContext& ctx) {
        Job job;
        job.place = 10 * ctx.rank();
        at::rand({ctx.rank()});  // each rank has drawn other numbers
        for (int step = 0; step < 2; ++step) job.step(ctx);
        const auto rank = static_cast<std::size_t>(ctx.rank());
        saved.records[rank] = ctx.saved_record(job.parts(ctx));
        torch::serialize::OutputArchive archive, net(archive.compilation_unit()), optimizer(archive.compilation_unit());
        job.net->save(net);
        job.optimizer.save(optimizer);
        archive.write("net", net);
        archive.write("optimizer", optimizer);
        archive.write("generator", ctx.generator().get_state());
        archive.write("place", at::tensor(job.place));
        std::ostringstream bytes;
        archive.save_to(bytes);
        saved.files[rank] = bytes.str();
      },
      ranks);
  saved.records.resize(static_cast<std::size_t>(ranks));
  return saved;
}

void load(RankContext& ctx, Job& job, const std::string& file) {
  std::istringstream bytes(file);
  torch::serialize::InputArchive archive, net, optimizer;
  archive.load_from(bytes);
  archive.read("net", net);
  job.net->load(net);
  archive.read("optimizer", optimizer);
  job.optimizer.load(optimizer);
  at::Tensor generator, place;
  archive.read("generator", generator);
  ctx.generator().set_state(generator);
  archive.read("place", place);
  job.place = place.item<std::int64_t>();
}

Report resume(const Saved& saved, const std::function<void(RankContext&, Job&)>& change = {}, int ranks = 4) {
  return run(
      [&](RankContext& ctx) {
        Job job;
        load(ctx, job, saved.files[static_cast<std::size_t>(ctx.rank()) % saved.records.size()]);
        if (change) change(ctx, job);
        ctx.check_saved(saved.records, job.parts(ctx));
      },
      ranks);
}

TEST(Saved, WhatIsLoadedAsItWas_IsSilent) {
  const auto report = resume(save());
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(report.checks.at("saved"), 4u);
  EXPECT_TRUE(report.remarks.empty());
}

// Rank 0 alone has saved, and all ranks load its place in the data.
TEST(Saved, ThePlaceOfRank0OnAllRanks_IsFound) {
  const auto saved = save();
  const auto report = resume(saved, [&](RankContext& ctx, Job& job) { job.place = ctx.rank() == 0 ? job.place : 2; });
  EXPECT_EQ(report.verdict, Verdict::check_failed);
  EXPECT_THAT(report.headline,
              ::testing::MatchesRegex("rank [123]: check \"saved\" did not hold: \"place\" of Long.1. is "
                                      "2, hash [0-9a-f]+, and was saved as [123]2, hash [0-9a-f]+"));
  auto of_one = saved;
  of_one.records.resize(1);
  EXPECT_NE(resume(of_one).headline.find("there are records of 1 of 4 ranks: each rank that saves makes one"),
            std::string::npos);
}

TEST(Saved, EachKindOfState_IsCompared) {
  const auto saved = save();
  const auto text = [&](const std::function<void(Job&)>& change) {
    return resume(saved,
                  [&](RankContext& ctx, Job& job) {
                    const at::NoGradGuard no_grad;
                    if (ctx.rank() == 2) change(job);
                  })
        .headline;
  };
  using ::testing::HasSubstr;
  EXPECT_THAT(text([](Job& job) { job.net->named_parameters()["0.weight"][0][1] += 1; }),
              HasSubstr("\"0.weight\" of "));
  EXPECT_THAT(text([](Job& job) { job.net->named_buffers()["1.running_var"].mul_(2); }),
              HasSubstr("\"1.running_var\""));
  EXPECT_THAT(text([](Job&) { at::rand({1}); }), HasSubstr("\"generator\" of Byte[5056] is hash "));
  EXPECT_THAT(text([](Job& job) {
                static_cast<torch::optim::AdamOptions&>(job.optimizer.param_groups()[0].options()).lr(0.5);
              }),
              HasSubstr("\"options of group 0.lr\" of Double[] is 0.5, "));
  EXPECT_THAT(text([](Job& job) {
                auto& state = *job.optimizer.state().at(job.net->parameters()[1].unsafeGetTensorImpl());
                static_cast<torch::optim::AdamParamState&>(state).exp_avg().mul_(2);
              }),
              HasSubstr("\"state of parameter 1.exp_avg\" of Float[4] is "));
  EXPECT_THAT(text([](Job& job) { job.optimizer.state().clear(); }), HasSubstr("was saved, and is missing"));
}

// With another number of ranks, what all ranks had saved alike is compared.
TEST(Saved, ByAnotherNumberOfRanks_IsComparedWhereAllAgreed) {
  const auto report = resume(save(), {}, 2);
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  ASSERT_EQ(report.remarks.size(), 1u);
  EXPECT_EQ(
      report.remarks[0],
      "ranks 0-1: check_saved() did not compare \"1.running_mean\" of Float[4], \"1.running_var\" of Float[4], "
      "\"generator\" of Byte[5056], \"place\" of Long[1]: the 4 ranks that saved had different values or other rows");
  const auto wrong = resume(
      save(2),
      [](RankContext& ctx, Job& job) {
        if (ctx.rank() == 3) job.optimizer.state().clear();
      },
      4);
  EXPECT_EQ(wrong.verdict, Verdict::ok) << wrong.headline;  // only what a rank has is compared
  const auto bad = resume(
      save(2),
      [](RankContext& ctx, Job& job) {
        const at::NoGradGuard no_grad;
        if (ctx.rank() == 3) job.net->parameters()[0].add_(1);
      },
      4);
  EXPECT_THAT(bad.headline, ::testing::HasSubstr("\"0.weight\" of Float[4, 3] is hash "));
}

TEST(Saved, OfShards_IsThatOfTheirRows) {
  const auto of = [](std::vector<std::string>& records, int ranks, bool checks) {
    return run(
        [&, checks](RankContext& ctx) {
          torch::nn::Linear net(3, 4);
          FullyShardedDataParallel fsdp(net, ctx.group());
          const std::vector<checks::ModelState> parts{fsdp};
          if (checks) return ctx.check_saved(records, parts);
          records[static_cast<std::size_t>(ctx.rank())] = ctx.saved_record(parts);
        },
        ranks);
  };
  std::vector<std::string> records(2);
  of(records, 2, false);
  EXPECT_EQ(of(records, 2, true).verdict, Verdict::ok);
  const auto other = of(records, 4, true);
  EXPECT_EQ(other.verdict, Verdict::ok) << other.headline;
  EXPECT_FALSE(other.remarks.empty());
}

// The state of an optimizer has names, so the ranks can be compared, too.
TEST(Saved, StateOfAnOptimizer_IsComparedBetweenRanks) {
  const auto report = run([](RankContext& ctx) {
    Job job;
    job.step(ctx);
    ctx.check_replicas(job.optimizer);
    auto& options = static_cast<torch::optim::AdamOptions&>(job.optimizer.param_groups()[0].options());
    if (ctx.rank() == 1) options.lr(0.5);
    ctx.check_replicas(job.optimizer);
  });
  EXPECT_TRUE(report.headline.starts_with(
      "replicas differ in check #2: rank 1 has a different \"options of group 0.lr\" than ranks 0,2-3"))
      << report.headline;
}

TEST(Saved, ATextThatIsNoRecord_IsRefused) {
  const auto report = run([](RankContext& ctx) { ctx.check_saved({"nothing"}, {{{"a", at::ones({1})}}}); }, 1);
  EXPECT_EQ(report.verdict, Verdict::rank_failed);
  EXPECT_THAT(report.headline, ::testing::HasSubstr("a text that saved_record() has not made: nothing"));
}

}  // namespace
}  // namespace checks_test
