// SPDX-License-Identifier: BSD-3-Clause
// Mixed precision: the dtypes of computations and reductions. The reference is one process that computes in the lower
// dtype. The tests also cover cases in which PyTorch's mixed precision fails: the first iteration, shared parameters,
// no_sync(), forward without grad mode.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/parallel/comm_hooks.h>
#include <rehearse_internal/exec/this_rank.h>

#include "bit_equal.h"
#include "core/parallel/ddp_fixture.h"
#include "core/parallel/recorded/recorded_models.h"

namespace {

using namespace rehearse_test;
using rehearse::DistributedDataParallel;
using rehearse::RankContext;
using rehearse::test::BitEqual;
using ::testing::HasSubstr;
using Options = rehearse::DistributedDataParallelOptions;

const rehearse::MixedPrecision kSingle = {.param_dtype = at::kFloat};

// Computes the gradients of all ranks' batches in float, on copies of the parameters. Returns the means over ranks, in
// double.
template <class Net>
std::vector<at::Tensor> mean_in_float(const Net& net, int ranks, std::vector<int> batches) {
  Net low;
  const auto from = net.named_parameters(), to = low.named_parameters();
  {
    const at::NoGradGuard no_grad;
    for (const auto& item : to) item.value().copy_(from[item.key()]);
  }
  low.to(at::kFloat);
  for (const int batch : batches) {
    for (int rank = 0; rank < ranks; ++rank) low.forward(batch_of(rank, batch).to(at::kFloat)).sum().backward();
  }
  std::vector<at::Tensor> gradients;
  for (const auto& item : low.named_parameters()) {
    const auto& gradient = item.value().grad();
    gradients.push_back(gradient.defined() ? gradient.to(at::kDouble) / ranks : gradient);
  }
  return gradients;
}

template <class Net>
void expect_mean(Options options,
                 const std::function<void(DistributedDataParallel<std::shared_ptr<Net>>&, int)>& step_of,
                 const std::function<std::vector<int>(int)>& batches_of) {
  options.mixed_precision = kSingle;
  const auto body = [&](RankContext& ctx) {
    auto net = std::make_shared<Net>();
    fill(*net, 7 * ctx.rank());
    DistributedDataParallel ddp(net, ctx.group(), options);
    for (int step = 0; step < 4; ++step) {
      ddp.zero_grad(/*set_to_none=*/!options.gradient_as_bucket_view);
      const auto expected = mean_in_float(*net, ctx.size(), batches_of(step));
      step_of(ddp, step);
      EXPECT_TRUE(close(gradient_copies(net->parameters()), expected, 1e-5)) << "step " << step;
      for (const auto& parameter : net->parameters()) EXPECT_EQ(parameter.scalar_type(), at::kDouble);
      descend(ddp.parameters(), 0.0625);
    }
  };
  for (const int ranks : {1, 2, 5}) run_ranks({.ranks = ranks}, body);
}

template <class Net>
void expect_plain(const Options& options) {
  expect_mean<Net>(
      options, [](auto& ddp, int step) { ddp(batch_of(rehearse::exec::this_rank::rank(), step)).sum().backward(); },
      [](int step) { return std::vector<int>{step}; });
}

TEST(DdpMixedPrecision, EveryIteration_ReducesWhatRanksComputed) {
  for (const bool views : {false, true}) {
    SCOPED_TRACE(views ? "views" : "no views");
    expect_plain<recorded::Mlp>({.bucket_cap_mb = 0.0001, .gradient_as_bucket_view = views});
    expect_plain<recorded::Mlp>({.gradient_as_bucket_view = views, .static_graph = true});
  }
}
TEST(DdpMixedPrecision, SharedParameters) { expect_plain<recorded::Tied>({}); }
TEST(DdpMixedPrecision, FrozenParameters) { expect_plain<recorded::Frozen>({}); }
TEST(DdpMixedPrecision, StaticGraphWithAnUnusedLayer) { expect_plain<recorded::Reused>({.static_graph = true}); }

TEST(DdpMixedPrecision, NoSync_AddsUpInParamDtype) {
  expect_mean<recorded::Mlp>(
      {},
      [](auto& ddp, int step) {
        const int rank = rehearse::exec::this_rank::rank();
        {
          const auto guard = ddp.no_sync();
          ddp(batch_of(rank, 10 * step)).sum().backward();
          EXPECT_EQ(ddp->first->weight.grad().scalar_type(), at::kFloat);
        }
        ddp(batch_of(rank, 10 * step + 1)).sum().backward();
      },
      [](int step) { return std::vector<int>{10 * step, 10 * step + 1}; });
}

TEST(DdpMixedPrecision, ForwardWithoutGradMode_LeavesParametersAsTheyWere) {
  expect_mean<recorded::Mlp>(
      {},
      [](auto& ddp, int step) {
        const int rank = rehearse::exec::this_rank::rank();
        const auto evaluate = [&] {
          const at::NoGradGuard no_grad;
          EXPECT_EQ(ddp(batch_of(rank, 50)).scalar_type(), at::kFloat);
        };
        evaluate();
        EXPECT_EQ(ddp->first->weight.scalar_type(), at::kDouble);
        auto loss = ddp(batch_of(rank, step)).sum();
        evaluate();
        EXPECT_EQ(ddp->first->weight.scalar_type(), at::kFloat);
        loss.backward();
      },
      [](int step) { return std::vector<int>{step}; });
}

struct Probe : torch::nn::Module {
  at::Tensor forward(const std::vector<at::Tensor>& parts, at::Tensor& counts, at::TensorList view, int scale) {
    EXPECT_EQ(weight.scalar_type(), at::kBFloat16);
    EXPECT_EQ(parts[0].scalar_type(), at::kBFloat16);
    EXPECT_EQ(counts.scalar_type(), at::kLong);
    EXPECT_EQ(view[0].scalar_type(), at::kDouble);
    EXPECT_EQ(statistics.scalar_type(), at::kHalf);
    return parts[0] * weight * scale;
  }
  at::Tensor weight = register_parameter("weight", at::ones({3}));
  at::Tensor statistics = register_buffer("statistics", at::zeros({2}));
};

TEST(DdpMixedPrecision, Dtypes_OfParametersInputsAndBuffers) {
  run_ranks({.ranks = 2}, [](RankContext& ctx) {
    auto net = std::make_shared<Probe>();
    DistributedDataParallel ddp(net, ctx.group(),
                                {.mixed_precision = rehearse::MixedPrecision{at::kBFloat16, at::kFloat, at::kHalf}});
    const std::vector<at::Tensor> parts = {at::ones({3}, at::kDouble)};
    auto counts = at::ones({1}, at::kLong);
    for (int step = 0; step < 3; ++step) {
      const auto output = ddp(parts, counts, at::TensorList(parts), ctx.rank() + 1);
      EXPECT_EQ(output.scalar_type(), at::kBFloat16);
      output.sum().backward();
      EXPECT_EQ(net->weight.scalar_type(), at::kFloat);
      EXPECT_THAT(net->weight.grad(), BitEqual(at::full({3}, 1.5f)));
      ddp.zero_grad();
    }
    EXPECT_EQ(parts[0].scalar_type(), at::kDouble);
  });
}

TEST(DdpMixedPrecision, WhatItDoesNotGoWith_IsAnError) {
  run_ranks({.ranks = 2}, [](RankContext& ctx) {
    EXPECT_THAT(error_of<c10::ValueError>([&] {
                  DistributedDataParallel ddp(torch::nn::Linear(3, 2), ctx.group(),
                                              {.find_unused_parameters = true, .mixed_precision = kSingle});
                }),
                HasSubstr("mixed_precision does not go with find_unused_parameters"));
    DistributedDataParallel ddp(torch::nn::Linear(3, 2), ctx.group(), {.mixed_precision = kSingle});
    EXPECT_THAT(error_of<c10::Error>([&] { ddp.register_comm_hook(rehearse::parallel::allreduce_hook(ctx.group())); }),
                HasSubstr("can only be called once"));
  });
}

TEST(DdpMixedPrecision, Join_EndsWithEqualParametersInFull) {
  run_ranks({.ranks = 3}, [](RankContext& ctx) {
    auto net = std::make_shared<recorded::Mlp>();
    fill(*net);
    DistributedDataParallel ddp(net, ctx.group(), {.mixed_precision = kSingle});
    ddp.join([&] {
      for (int step = 0; step < 1 + 2 * ctx.rank(); ++step) {
        ddp.zero_grad();
        ddp(batch_of(ctx.rank(), step)).sum().backward();
        descend(ddp.parameters(), 0.0625);
      }
    });
    for (auto& parameter : net->parameters()) {
      EXPECT_EQ(parameter.scalar_type(), at::kDouble);
      std::vector<at::Tensor> lowest = {parameter.detach().clone()}, highest = {lowest[0].clone()};
      c10d::AllreduceOptions by_min, by_max;
      by_min.reduceOp = c10d::ReduceOp::MIN;
      by_max.reduceOp = c10d::ReduceOp::MAX;
      ctx.group()->allreduce(lowest, by_min)->wait();
      ctx.group()->allreduce(highest, by_max)->wait();
      EXPECT_THAT(lowest[0], BitEqual(highest[0]));
    }
  });
}

}  // namespace
