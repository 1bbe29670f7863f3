// SPDX-License-Identifier: BSD-3-Clause
// Trains the same model three times from the same seed: uncompiled, compiled whole, and compiled in pieces that end
// where DDP's gradient buckets end. All three give the same bits. In pieces, the all-reduce of one bucket runs while
// backward computes the next one. Compiled whole, all gradients come at the end of a single backward, and the network
// is idle until then.
#include <cstdio>
#include <string>
#include <vector>

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <rehearse/compile/compile.h>
#include <rehearse/job/program.h>
#include <rehearse/job/rank_context.h>
#include <rehearse/parallel/comm_hooks.h>
#include <rehearse/parallel/distributed_data_parallel.h>

#include "table.h"

namespace {

using rehearse::DistributedDataParallel;
using torch::nn::Linear;
using torch::nn::ReLU;
using torch::nn::Sequential;

// The model from PyTorch's tests of DDPOptimizer.
Sequential toy(std::int64_t hidden) {
  return Sequential(Linear(10, hidden), ReLU(), Linear(hidden, hidden), ReLU(), Linear(hidden, hidden), ReLU(),
                    Linear(hidden, 5), ReLU());
}

struct Batch {
  at::Tensor x, y;
};

// Every third batch is smaller.
Batch batch_of(const rehearse::RankContext& ctx, std::int64_t step) {
  const std::int64_t rows = step % 3 == 2 ? 12 : 20;
  const auto x = at::sin(at::arange(rows * 10, at::kFloat).view({rows, 10}) * 0.37 + step * 1.3 + ctx.rank());
  return {x, x.narrow(1, 0, 5).square()};
}

// DDP's all-reduce, which also records when it starts.
std::unique_ptr<c10d::CommHookInterface> noted_all_reduce(rehearse::RankContext& ctx,
                                                          std::vector<rehearse::VirtualTime>& starts) {
  std::shared_ptr<c10d::CommHookInterface> all_reduce = rehearse::parallel::allreduce_hook(ctx.group().get());
  return rehearse::parallel::comm_hook([&ctx, &starts, all_reduce](c10d::GradBucket& bucket) {
    starts.push_back(ctx.now());
    return all_reduce->runHook(bucket);
  });
}

// Trains the model by calling the function that `forward_of` makes of it.
template <class ForwardOf>
Training train_with(rehearse::RankContext& ctx, const rehearse::Parameters& parameters, ForwardOf forward_of) {
  ctx.generator().set_current_seed(1);
  DistributedDataParallel ddp(toy(parameters.integer("hidden")), ctx.group(),
                              {.bucket_cap_mb = parameters.number("bucket_cap_mb"), .first_bucket_bytes = 1 << 20});
  std::vector<rehearse::VirtualTime> starts;
  ddp.register_comm_hook(noted_all_reduce(ctx, starts));
  torch::optim::SGD optimizer(ddp.parameters(), parameters.number("learning_rate"));
  auto forward = forward_of(ddp);

  Training result;
  for (std::int64_t step = 0; step < parameters.integer("steps"); ++step) {
    const auto step_begins = ctx.now();
    starts.clear();
    const auto [x, y] = batch_of(ctx, step);
    ddp.zero_grad();
    const at::Tensor loss = at::mse_loss(forward(x), y);
    const auto backward_begins = ctx.now();
    loss.backward();
    result.backward = ctx.now() - backward_begins;
    optimizer.step();
    result.losses.push_back(loss.item<double>());
    result.step = ctx.now() - step_begins;
    result.starts.clear();
    for (const auto at : starts) result.starts.push_back(at - backward_begins);
  }
  for (const auto& parameter : ddp.parameters()) result.parameters.push_back(parameter.detach().clone());
  if constexpr (requires { forward.explain(); }) result.explained = forward.explain();
  return result;
}

bool same_bits(const Training& one, const Training& other) {
  if (one.losses != other.losses) return false;
  for (std::size_t i = 0; i < one.parameters.size(); ++i) {
    if (!at::equal(one.parameters[i].view(at::kInt), other.parameters[i].view(at::kInt))) return false;
  }
  return true;
}

void train(rehearse::RankContext& ctx, const rehearse::Parameters& parameters) {
  const auto as_it_is =
      train_with(ctx, parameters, [](auto& ddp) { return [&ddp](const at::Tensor& x) { return ddp.forward(x); }; });
  const auto whole = train_with(ctx, parameters, [](auto& ddp) {
    return rehearse::compile(ddp, {.backend = "aot_eager", .fullgraph = true, .optimize_ddp = false});
  });
  const auto split = train_with(
      ctx, parameters, [](auto& ddp) { return rehearse::compile(ddp, {.backend = "aot_eager", .fullgraph = true}); });

  ctx.expect(same_bits(whole, as_it_is), "compiled whole: losses and parameters are those of the model as it is");
  ctx.expect(same_bits(split, as_it_is), "compiled in pieces: losses and parameters are those of the model as it is");
  ctx.expect(as_it_is.losses.back() < as_it_is.losses.front(), "the loss falls");
  ctx.expect(split.starts.front() < whole.starts.front(), "in pieces the network starts earlier");
  ctx.expect(split.step < whole.step, "a step in pieces is shorter than a whole one");
  if (ctx.rank() == 0) std::fputs(table_of(as_it_is, whole, split).c_str(), stdout);
}

REHEARSE_PROGRAM(split_ddp){
    .summary = "a model compiled in pieces cut where DDP's gradient buckets end",
    .parameters = {{"hidden", std::int64_t{512}, "width of the hidden layers", 1, 1e4},
                   {"steps", std::int64_t{9}, "training steps", 3, 1e6},
                   {"bucket_cap_mb", 1.0, "MiB of gradients reduced together, 1 or more", 1, 1e4},
                   {"learning_rate", 0.1, "of SGD", 0, 10}},
    .body = train};

}  // namespace
