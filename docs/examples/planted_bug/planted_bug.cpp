// SPDX-License-Identifier: BSD-3-Clause
// A job with a bug that a run on one machine may never show: each rank decides by its own loss whether to take part in
// an all-reduce. On a cluster the job hangs, minutes after the cause, or silently adds a loss to gradients.
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <rehearse/job/program.h>
#include <rehearse/job/rank_context.h>
#include <rehearse/parallel/distributed_data_parallel.h>

namespace {

constexpr double kInteresting = 0.05;

// y is the sum of x, plus noise on all ranks but the last, whose data happens to be clean.
std::pair<at::Tensor, at::Tensor> batch_of(const rehearse::RankContext& ctx, int step) {
  const auto angle = at::arange(64 * 8, at::kFloat).view({64, 8}) * 0.37 + step * 1.3 + ctx.rank();
  const auto x = at::sin(angle);
  const double noise = ctx.rank() + 1 == ctx.size() ? 0.0 : 1.0;
  const auto y = x.sum(1, /*keepdim=*/true) + noise * at::cos(angle.narrow(1, 0, 1) * 5.1);
  return {x.to(ctx.device()), y.to(ctx.device())};
}

void train(rehearse::RankContext& ctx, const rehearse::Parameters& parameters) {
  torch::nn::Linear net(8, 1);
  net->to(ctx.device());
  rehearse::DistributedDataParallel ddp(net, ctx.group());
  torch::optim::SGD optimizer(ddp.parameters(), 0.1);
  const auto steps = parameters.integer("steps");
  for (int step = 0; step < steps; ++step) {
    const auto [x, y] = batch_of(ctx, step);
    ddp.zero_grad();
    const auto loss = at::mse_loss(ddp.forward(x), y);
    loss.backward();
    optimizer.step();

    // The bug: a rank whose loss is small leaves out the all-reduce, which the other ranks still call.
    if (loss.item<double>() > kInteresting) {
      auto mean = loss.detach() / ctx.size();
      ctx.group().allreduce(mean)->wait();
      ctx.progress(step + 1, steps, "loss " + std::to_string(mean.item<double>()));
    }
  }
}

REHEARSE_PROGRAM(planted_bug){.summary = "one rank leaves out an all-reduce: what a report looks like",
                              .parameters = {{"steps", std::int64_t{50}, "training steps", 1, 1e6}},
                              .body = train};

}  // namespace
