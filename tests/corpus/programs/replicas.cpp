// SPDX-License-Identifier: BSD-3-Clause
// Replicas of a model that drift apart: gradients that no rank reduces, and buffers that no rank broadcasts.
#include <ATen/ATen.h>

#include <torch/nn/modules/linear.h>

#include <rehearse/parallel/distributed_data_parallel.h>

#include "corpus/entry.h"

namespace corpus {
namespace {

using rehearse::DistributedDataParallel;

at::Tensor own_batch(const RankContext& ctx) { return at::full({2, 4}, 0.25 * (ctx.rank() + 1)); }

void step(const torch::nn::Module& module) {
  const at::NoGradGuard no_grad;
  for (auto& parameter : module.parameters()) {
    if (parameter.grad().defined()) parameter.sub_(parameter.grad(), 0.5);
  }
}

// The training loop leaves out the step that reduces gradients, so every rank trains by itself.
void never_reduces(RankContext& ctx, bool corrected) {
  torch::nn::Linear net(4, 1);
  ctx.check_replicas(net);
  net->forward(own_batch(ctx)).sum().backward();
  if (corrected) {
    for (auto& parameter : net->parameters()) ctx.group().allreduce(parameter.grad(), c10d::ReduceOp::AVG)->wait();
  }
  step(*net);
  ctx.check_replicas(net);  // <- B077
}

struct BranchesImpl : torch::nn::Module {
  BranchesImpl()
      : nn1(register_module("nn1", torch::nn::Linear(4, 1))), nn2(register_module("nn2", torch::nn::Linear(4, 1))) {}
  at::Tensor forward(const at::Tensor& x, bool second) { return second ? nn2(x) : nn1(x); }
  torch::nn::Linear nn1, nn2;
};
TORCH_MODULE(Branches);

// Only the first micro-batch, under no_sync(), uses nn1. In the bug report, the second one reduced without nn1.
void uses_a_branch_under_no_sync(RankContext& ctx, bool) {
  DistributedDataParallel ddp(Branches(), ctx.group(), {.find_unused_parameters = true});
  const auto train = [&](bool second) { ddp.forward(own_batch(ctx), second).sum().backward(); };
  {
    const auto guard = ddp.no_sync();
    train(false);
  }
  train(true);
  step(ddp.module());
  ctx.check_replicas(ddp);  // <- B078
}

// The flag for the last micro-batch is set between its forward, which reads the flag, and its backward.
void sets_sync_flag_after_forward(RankContext& ctx, bool corrected) {
  DistributedDataParallel ddp(torch::nn::Linear(4, 1), ctx.group());
  for (int micro = 0; micro < 3; ++micro) {
    const auto guard = ddp.no_sync();
    ddp.forward(own_batch(ctx)).sum().backward();
  }
  at::Tensor loss;
  if (corrected) {
    loss = ddp.forward(own_batch(ctx)).sum();
  } else {
    const auto guard = ddp.no_sync();
    loss = ddp.forward(own_batch(ctx)).sum();
  }
  loss.backward();
  step(ddp.module());
  ctx.check_replicas(ddp);  // <- B079
}

struct KeepsMeanImpl : torch::nn::Module {
  KeepsMeanImpl() : mean(register_buffer("mean", at::zeros({4}))) {}
  at::Tensor forward(const at::Tensor& x, bool in_place) {
    if (in_place) {
      mean.copy_(x.detach().mean(0));
    } else {
      mean = x.detach().mean(0);  // another tensor, which DDP does not know
    }
    return linear(x - mean);
  }
  torch::nn::Linear linear = register_module("linear", torch::nn::Linear(4, 1));
  at::Tensor mean;
};
TORCH_MODULE(KeepsMean);

void assigns_another_buffer(RankContext& ctx, bool corrected) {
  KeepsMean net;
  DistributedDataParallel ddp(net, ctx.group());
  for (int batch = 0; batch < 2; ++batch) ddp.forward(own_batch(ctx), corrected).sum().backward();
  // The next forward would begin with this broadcast.
  if (corrected) ctx.group().broadcast(net->mean)->wait();
  ctx.check_replicas({{"mean", net->mean}});  // <- B093
}

// Only rank 0 has loaded buffers, and DDP was told to broadcast none, not even at construction.
void loads_buffers_on_rank_0(RankContext& ctx, bool corrected) {
  KeepsMean net;
  if (ctx.rank() == 0) net->mean.fill_(3);
  DistributedDataParallel ddp(net, ctx.group(), {.broadcast_buffers = corrected});
  ctx.check_replicas(ddp, {.buffers = true});  // <- B095
}

}  // namespace

Entries replicas() {
  return {
      {"B077",
       never_reduces,
       {.ranks = 3},
       Verdict::check_failed,
       {0, 1, 2},
       "replicas differ in check #2: ranks 0-2 have 3 different \"weight\" (rank 1 against rank 0: 4 of 4 elements, by "
       "up to *)"},
      {"B078", uses_a_branch_under_no_sync, {.ranks = 3}},
      {"B079",
       sets_sync_flag_after_forward,
       {.ranks = 3},
       Verdict::check_failed,
       {0, 1, 2},
       "replicas differ in check #1: ranks 0-2 have 3 different \"weight\" (rank 1 against rank 0: 4 of 4 elements, by "
       "up to *)"},
      {"B093",
       assigns_another_buffer,
       {.ranks = 3},
       Verdict::check_failed,
       {0, 1, 2},
       "replicas differ in check #1: ranks 0-2 have 3 different \"mean\" (rank 1 against rank 0: 4 of 4 elements, by "
       "up to *)"},
      {"B095",
       loads_buffers_on_rank_0,
       {.ranks = 3},
       Verdict::check_failed,
       {0},
       "buffers differ in check #1 although all parameters agree: rank 0 has a different \"mean\" than ranks 1-2 (4 of "
       "4 elements, by up to 3 at [0]: 3, not 0)"},
  };
}

}  // namespace corpus
