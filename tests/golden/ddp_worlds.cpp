// SPDX-License-Identifier: BSD-3-Clause
#include "ddp_worlds.h"

#include <ATen/ATen.h>
#include <torch/nn/modules/linear.h>

#include <rehearse/parallel/distributed_data_parallel.h>

namespace golden_worlds {
using rehearse::DistributedDataParallel;
using rehearse::DistributedDataParallelOptions;

namespace {

constexpr int kSteps = 4;

struct TwoWaysImpl : torch::nn::Module {
  TwoWaysImpl()
      : stem(register_module("stem", torch::nn::Linear(4, 4))),
        scenic(register_module("scenic", torch::nn::Linear(4, 4))),
        head(register_module("head", torch::nn::Linear(4, 1))) {}

  at::Tensor forward(const at::Tensor& x, bool around = false) {
    auto hidden = stem(x).relu();
    if (!around) hidden = scenic(hidden).relu();
    return head(hidden);
  }

  torch::nn::Linear stem, scenic, head;
};
TORCH_MODULE(TwoWays);

bool is_last(const RankContext& ctx) { return ctx.rank() + 1 == ctx.size(); }

at::Tensor batch(const RankContext& ctx, int step) {
  return at::sin(at::arange(8, at::kFloat).view({2, 4}) + step + 0.5 * ctx.rank());
}

at::Tensor loss_of(DistributedDataParallel<TwoWays>& ddp, const at::Tensor& x, bool around = false) {
  return (ddp.forward(x, around) - 1).square().mean();
}

void train_leaving_out(RankContext& ctx, int in_step, const DistributedDataParallelOptions& options) {
  DistributedDataParallel ddp(TwoWays(), ctx.group(), options);
  for (int step = 0; step < kSteps; ++step) {
    const auto loss = loss_of(ddp, batch(ctx, step), is_last(ctx) && step == in_step);
    loss.backward();
  }
}

void train_without_backward_in(RankContext& ctx, int left_out) {
  DistributedDataParallel ddp(TwoWays(), ctx.group());
  for (int step = 0; step < kSteps; ++step) {
    const auto loss = loss_of(ddp, batch(ctx, step));
    if (is_last(ctx) && step == left_out) continue;
    loss.backward();
  }
}

}  // namespace

void returns_a_step_early(RankContext& ctx) {
  DistributedDataParallel ddp(TwoWays(), ctx.group());
  for (int step = 0; step < kSteps; ++step) {
    if (is_last(ctx) && step + 1 == kSteps) return;
    const auto loss = loss_of(ddp, batch(ctx, step));
    loss.backward();
  }
}

void skips_the_last_backward(RankContext& ctx) { train_without_backward_in(ctx, kSteps - 1); }

void skips_a_backward_on_the_way(RankContext& ctx) { train_without_backward_in(ctx, 1); }

void leaves_a_layer_out(RankContext& ctx) { train_leaving_out(ctx, kSteps - 1, {}); }

void leaves_a_layer_out_before_the_last_step(RankContext& ctx) { train_leaving_out(ctx, kSteps - 2, {}); }

void leaves_a_layer_out_as_agreed(RankContext& ctx) {
  std::vector<int> even, odd;
  for (int rank = 0; rank < ctx.size(); ++rank) (rank % 2 == 0 ? even : odd).push_back(rank);
  const auto evens = ctx.new_group(even, "even");
  const auto odds = ctx.new_group(odd, "odd");
  const auto half = evens ? evens : odds;
  DistributedDataParallel aside(TwoWays(), half, {.bucket_cap_mb = 0.0001});
  train_leaving_out(ctx, 2, {.find_unused_parameters = true});
  for (int step = 0; step < kSteps; ++step) {
    // Two models at once: each backward uses both groups.
    DistributedDataParallel ddp(TwoWays(), ctx.group(), {.find_unused_parameters = true});
    (loss_of(ddp, batch(ctx, step), ctx.rank() % 2 == 0) + loss_of(aside, batch(ctx, step))).backward();
  }
}

void registers_layers_in_another_order(RankContext& ctx) {
  struct Pair : torch::nn::Module {
    explicit Pair(bool swapped) {
      if (swapped) register_module("right", right);
      register_module("left", left);
      if (!swapped) register_module("right", right);
    }
    at::Tensor forward(const at::Tensor& x) { return right(left(x)); }
    torch::nn::Linear left{4, 4}, right{4, 4};
  };
  DistributedDataParallel ddp(std::make_shared<Pair>(is_last(ctx)), ctx.group());
  ddp.forward(batch(ctx, 0)).sum().backward();
}

}  // namespace golden_worlds
