// SPDX-License-Identifier: BSD-3-Clause
// Tests every place at which LibTorch calls user code, in whole worlds. The code runs on its own rank's fiber, and may
// block there in a collective. The gradients are those of one process with all ranks' batches.
#include <array>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/csrc/distributed/c10d/comm.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include <rehearse/sim/world.h>
#include <rehearse_internal/exec/this_rank.h>

#include "bit_equal.h"

namespace {

namespace this_rank = rehearse::exec::this_rank;
using rehearse::RankContext;
using rehearse::test::BitEqual;

enum Place { in_forward, tensor_hook, parameter_hook, post_accumulate, comm_hook, final_callback, reentrant, places };

constexpr int kSteps = 2;

// How often one rank reached each place.
using Visits = std::array<int, places>;

// Blocks in a collective at a place, and checks that this rank's fiber continues afterwards. All ranks reach the places
// in the same order, because they run the same graph.
class Witness {
 public:
  explicit Witness(RankContext& ctx) : ctx_(ctx) {}

  void at(Place place) {
    const bool main_fiber = this_rank::fiber_of_rank() == 0;
    auto sum = at::full({3}, static_cast<double>(ctx_.rank() + 1), at::kDouble);
    const at::Tensor drawn = at::rand({1});  // every rank has advanced its generator equally far
    ctx_.group().allreduce(sum)->wait();
    const double ranks = ctx_.size();
    EXPECT_THAT(sum, BitEqual(at::full({3}, ranks * (ranks + 1) / 2, at::kDouble)));
    EXPECT_EQ(this_rank::rank(), ctx_.rank());
    EXPECT_TRUE(main_fiber) << "place " << place;
    auto rank0 = drawn.clone();
    ctx_.group().broadcast(rank0)->wait();
    EXPECT_THAT(rank0, BitEqual(drawn)) << "place " << place;
    ++visits[place];
  }

  Visits visits{};

 private:
  RankContext& ctx_;
};

struct PostAccumulate final : torch::autograd::PostAccumulateGradHook {
  explicit PostAccumulate(Witness& witness) : witness(witness) {}
  void operator()(const torch::autograd::Variable& parameter) override {
    EXPECT_TRUE(parameter.grad().defined());
    witness.at(post_accumulate);
  }
  Witness& witness;
};

// Blocks in a collective of its own, and then returns the bucket's mean, as DDP computes it without a hook.
struct MeanHook final : c10d::CppCommHookInterface<std::pair<RankContext*, Witness*>> {
  using CppCommHookInterface::CppCommHookInterface;
  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override {
    const auto [ctx, witness] = state_;
    witness->at(comm_hook);
    auto flat = bucket.getBuffer();
    flat.div_(ctx->size());
    return ctx->group().allreduce(flat)->getFuture();
  }
};

std::vector<at::Tensor> fresh_weights() {
  std::vector<at::Tensor> weights;
  for (int k = 0; k < 2; ++k) {
    weights.push_back((at::arange(36, at::kDouble).reshape({6, 6}) / 64 - 0.25 * k).requires_grad_());
  }
  return weights;
}

at::Tensor input_of(int rank, int step) {
  return at::arange(12, at::kDouble).reshape({2, 6}) / 16 - 0.25 * ((rank + step) % 5);
}

at::Tensor hidden_of(const std::vector<at::Tensor>& weights, const at::Tensor& input) {
  return input.matmul(weights[0]).relu();
}
at::Tensor loss_of(const std::vector<at::Tensor>& weights, const at::Tensor& hidden) {
  return hidden.matmul(weights[1]).pow(2).sum();
}

void backward_within(Witness& witness) {
  const at::AutoGradMode record(true);
  auto inner = at::ones({3}, at::kDouble).requires_grad_();
  inner.register_hook([&](const at::Tensor&) { witness.at(reentrant); });
  torch::autograd::backward({(inner * inner).sum()}, {});
  EXPECT_THAT(inner.grad(), BitEqual(at::full({3}, 2.0, at::kDouble)));
}

void add_hooks(const std::vector<at::Tensor>& weights, Witness& witness) {
  for (const auto& weight : weights) {
    weight.register_hook([&](const at::Tensor&) { witness.at(parameter_hook); });
    torch::autograd::impl::set_post_acc_grad_hooks(weight, std::make_unique<PostAccumulate>(witness));
  }
}

// Two steps with a bucket for each weight. The gradients add up over the steps.
std::vector<at::Tensor> train(RankContext& ctx, Witness& witness) {
  const auto weights = fresh_weights();
  add_hooks(weights, witness);
  c10d::Reducer reducer(weights, {{1}, {0}}, ctx.group(), {false, false}, 1 << 20, /*find_unused_parameters=*/false,
                        /*gradient_as_bucket_view=*/false, {}, 1, /*skip_all_reduce_unused_params=*/false,
                        /*use_python_reducer=*/false, {});
  reducer.register_comm_hook(std::make_unique<MeanHook>(std::pair{&ctx, &witness}));
  std::vector<at::Tensor> total = {at::zeros({6, 6}, at::kDouble), at::zeros({6, 6}, at::kDouble)};
  for (int step = 0; step < kSteps; ++step) {
    const auto hidden = hidden_of(weights, input_of(ctx.rank(), step));
    witness.at(in_forward);
    hidden.register_hook([&](const at::Tensor&) {
      witness.at(tensor_hook);
      backward_within(witness);
      torch::autograd::Engine::get_default_engine().queue_callback([&] { witness.at(final_callback); });
    });
    reducer.prepare_for_backward({});
    torch::autograd::backward({loss_of(weights, hidden)}, {});
    for (std::size_t k = 0; k < 2; ++k) {
      total[k] += weights[k].grad();
      weights[k].mutable_grad().reset();
    }
  }
  return total;
}

std::vector<at::Tensor> single_process(int ranks) {
  const auto weights = fresh_weights();
  for (int step = 0; step < kSteps; ++step) {
    for (int rank = 0; rank < ranks; ++rank) {
      const auto loss = loss_of(weights, hidden_of(weights, input_of(rank, step)));
      torch::autograd::backward({loss / ranks}, {});
    }
  }
  return {weights[0].grad(), weights[1].grad()};
}

using RanksAndSeed = std::tuple<int, int>;

class HookFibers : public testing::TestWithParam<RanksAndSeed> {
 protected:
  void run(const rehearse::World::Body& body) {
    rehearse::World world({.ranks = std::get<0>(GetParam()),
                           .seed = static_cast<std::uint64_t>(std::get<1>(GetParam())),
                           .stack_bytes = 1 << 20});
    const auto report = world.run(body);
    EXPECT_EQ(report.verdict, rehearse::Verdict::ok) << report.headline;
  }
};

TEST_P(HookFibers, EveryHook_BlocksInItsOwnRanksFiber) {
  const int ranks = std::get<0>(GetParam());
  const auto expected = single_process(ranks);
  int finished = 0;
  run([&](RankContext& ctx) {
    Witness witness(ctx);
    const auto gradients = train(ctx, witness);
    for (std::size_t k = 0; k < 2; ++k) EXPECT_TRUE(at::allclose(gradients[k], expected[k], 1e-11, 1e-11));
    EXPECT_EQ(witness.visits, (Visits{kSteps, kSteps, 2 * kSteps, 2 * kSteps, 2 * kSteps, kSteps, kSteps}));
    ++finished;
  });
  EXPECT_EQ(finished, ranks);
}

TEST_P(HookFibers, ThenCallback_ReadsRankDrawsAndLaunchesACollective) {
  const int ranks = std::get<0>(GetParam());
  std::vector<int> ran_on(static_cast<std::size_t>(ranks), -1);
  run([&](RankContext& ctx) {
    auto own = ctx.generator().clone();
    const auto input = at::full({2}, static_cast<double>(ctx.rank()), at::kDouble);
    auto second = at::empty({1});
    const auto chained = ctx.group().allreduce(input)->getFuture()->then(
        [&](c10::ivalue::Future& done) -> c10::IValue {
          EXPECT_TRUE(done.value().toTensorVector().at(0).is_same(input));
          ran_on[static_cast<std::size_t>(ctx.rank())] = this_rank::rank();
          second = at::rand({1});
          EXPECT_THAT(second, BitEqual(at::rand({1}, own)));
          ctx.group().allreduce(second)->wait();
          return second;
        },
        c10::TensorType::get());
    chained->wait();
    EXPECT_FALSE(chained->hasError());
    const double sum = ranks * (ranks - 1) / 2.0;
    EXPECT_THAT(input, BitEqual(at::full({2}, sum, at::kDouble)));
    auto rank0 = second.clone();
    ctx.group().broadcast(rank0)->wait();
    EXPECT_THAT(rank0, BitEqual(second));
  });
  for (int rank = 0; rank < ranks; ++rank) EXPECT_EQ(ran_on[static_cast<std::size_t>(rank)], rank);
}

INSTANTIATE_TEST_SUITE_P(RanksAndSeeds, HookFibers,
                         testing::Combine(testing::Values(2, 3, 16, 64, 256), testing::Values(1, 2, 3)));

}  // namespace
