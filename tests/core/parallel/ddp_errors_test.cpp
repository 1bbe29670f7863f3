// SPDX-License-Identifier: BSD-3-Clause
// DDP's errors on every rank, for models that DDP does not support, and for models that differ between ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/parallel/ddp_fixture.h"

namespace {

using namespace rehearse_test;
using rehearse::DistributedDataParallel;
using rehearse::RankContext;
using ::testing::HasSubstr;

TEST(DdpErrors, NoParameterNeedsAGradient_SaysSo) {
  run_ranks({.ranks = 2}, [](RankContext& ctx) {
    torch::nn::Linear frozen(3, 2);
    for (auto& parameter : frozen->parameters()) parameter.set_requires_grad(false);
    EXPECT_THAT(
        error_of<c10::Error>([&] { DistributedDataParallel ddp(frozen, ctx.group()); }),
        HasSubstr("DistributedDataParallel is not needed when a module doesn't have any parameter that requires a "
                  "gradient."));
    EXPECT_THAT(error_of<c10::Error>([&] {
                  DistributedDataParallel ddp(torch::nn::Linear(3, 2), c10::intrusive_ptr<c10d::ProcessGroup>());
                }),
                HasSubstr("empty process group"));
    EXPECT_THAT(error_of<c10::ValueError>(
                    [&] { DistributedDataParallel ddp(torch::nn::Linear(3, 2), ctx.group(), {.bucket_cap_mb = 0}); }),
                HasSubstr("buckets must hold at least one byte"));
  });
}

TEST(DdpErrors, OneModelForAllRanks_IsRefused) {
  torch::nn::Linear shared(3, 2);
  const auto report = rehearse::World({.ranks = 3}).run([&](RankContext& ctx) {
    DistributedDataParallel ddp(shared, ctx.group());
    ddp(at::ones({1, 3})).sum().backward();
  });
  EXPECT_EQ(report.verdict, rehearse::Verdict::rank_failed);
  EXPECT_THAT(report.headline, HasSubstr("one model for several ranks, as processes cannot have it"));
  // Several ranks may use the same model object, one after the other.
  const auto in_turn = rehearse::World({.ranks = 3}).run([&](RankContext& ctx) {
    for (int rank = 0; rank < 3; ++rank) {
      if (ctx.rank() == rank) DistributedDataParallel(shared, ctx.new_local_group({rank})).zero_grad();
      ctx.group().barrier()->wait();
    }
  });
  EXPECT_EQ(in_turn.verdict, rehearse::Verdict::ok) << in_turn.headline;
}

// The backwards of a GAN's generator and discriminator may run in another order on one rank. The buckets of both models
// have equal sizes, so without the check each model would get gradients of the other.
TEST(DdpErrors, BackwardsOfTwoModelsInAnotherOrder_AreAMismatch) {
  const auto report = rehearse::World({.ranks = 3}).run([](RankContext& ctx) {
    DistributedDataParallel first(torch::nn::Linear(3, 2), ctx.group());
    DistributedDataParallel second(torch::nn::Linear(3, 2), ctx.group());
    auto loss = first(at::ones({1, 3})).sum();
    auto other_loss = second(at::ones({1, 3})).sum();
    if (ctx.rank() == 2) std::swap(loss, other_loss);
    loss.backward();
    other_loss.backward();
  });
  EXPECT_EQ(report.verdict, rehearse::Verdict::mismatch);
  EXPECT_THAT(report.headline, HasSubstr("label=\"DDP #2 bucket 0 of 1: "));
  EXPECT_THAT(report.headline, HasSubstr("label=\"DDP bucket 0 of 1: "));
}

// Returns each rank's error at construction. Only rank 2 has a different net.
template <class Make>
std::vector<std::string> disagreement(Make&& make) {
  constexpr int kRanks = 4;
  std::vector<std::string> errors(kRanks);
  run_ranks({.ranks = kRanks, .seed = 3}, [&](RankContext& ctx) {
    auto net = make(ctx.rank() == 2);
    errors[ctx.rank()] = error_of<c10::Error>([&] { DistributedDataParallel ddp(net, ctx.group()); });
    ctx.group().barrier()->wait();  // no rank is still in a collective of the check
  });
  return errors;
}

void expect_of_rank_2(const std::vector<std::string>& errors, const std::string& tail) {
  for (std::size_t rank = 0; rank < errors.size(); ++rank) {
    const std::string place = rank == 2 ? "this process" : "process 2";
    EXPECT_THAT(errors[rank], HasSubstr("[" + std::to_string(rank) + "]: params[1] in " + place + " with " + tail));
  }
}

struct ThreeParameters : torch::nn::Module {
  explicit ThreeParameters(const at::Tensor& second) {
    register_parameter("first", at::zeros({2}));
    register_parameter("second", second);
    register_parameter("third", at::zeros({}));
  }
  at::Tensor forward(const at::Tensor& x) { return x; }
};

TEST(DdpErrors, SizesDiffer_EveryRankNamesParameterRankAndBothSizes) {
  expect_of_rank_2(
      disagreement([](bool odd) { return std::make_shared<ThreeParameters>(at::zeros({odd ? 5 : 4, 3})); }),
      "sizes [5, 3] appears not to match sizes of the same param in process 0, [4, 3]. Its name "
      "here is second.");
}

TEST(DdpErrors, StridesDiffer_EveryRankNamesThem) {
  expect_of_rank_2(disagreement([](bool odd) {
                     return std::make_shared<ThreeParameters>(odd ? at::zeros({3, 3}).t() : at::zeros({3, 3}));
                   }),
                   "strides [1, 3] appears not to match strides of the same param in process 0, [3, 1].");
}

TEST(DdpErrors, DtypesDiffer_EveryRankNamesThem) {
  expect_of_rank_2(disagreement([](bool odd) {
                     return std::make_shared<ThreeParameters>(at::zeros({3, 3}, odd ? at::kDouble : at::kFloat));
                   }),
                   "dtype Double appears not to match dtype of the same param in process 0, Float.");
}

TEST(DdpErrors, RankZeroIsTheOddOne_AllOthersNameIt) {
  run_ranks({.ranks = 3}, [](RankContext& ctx) {
    auto net = std::make_shared<ThreeParameters>(at::zeros({ctx.rank() == 0 ? 1 : 2}));
    const auto error = error_of<c10::Error>([&] { DistributedDataParallel ddp(net, ctx.group()); });
    EXPECT_THAT(error, HasSubstr("[" + std::to_string(ctx.rank()) + "]: params[1] in " +
                                 (ctx.rank() == 0 ? "process 1" : "this process") + " with sizes [2]"));
  });
}

TEST(DdpErrors, NumberOfParametersDiffers_EveryRankNamesTheOther) {
  const auto errors =
      disagreement([](bool odd) { return torch::nn::Linear(torch::nn::LinearOptions(3, 4).bias(!odd)); });
  const std::string text = "DDP expects same model across all ranks, but Rank ";
  for (const int rank : {0, 1, 3}) {
    EXPECT_THAT(errors[rank],
                HasSubstr(text + std::to_string(rank) + " has 2 params, while rank 2 has inconsistent 1 params."));
  }
  EXPECT_THAT(errors[2], HasSubstr(text + "2 has 1 params, while rank 0 has inconsistent 2 params."));
}

// Each model has a parameter of 4 elements and one of 2, but in different order.
TEST(DdpErrors, SameNumbersInOtherPlaces_StillDiffer) {
  struct Net : torch::nn::Module {
    explicit Net(bool odd) {
      register_parameter("a", at::zeros({odd ? 2 : 4}));
      register_parameter("b", at::zeros({odd ? 4 : 2}));
    }
    at::Tensor forward(const at::Tensor& x) { return x; }
  };
  const auto errors = disagreement([](bool odd) { return std::make_shared<Net>(odd); });
  EXPECT_THAT(errors[1], HasSubstr("params[0] in process 2 with sizes [2]"));
}

}  // namespace
