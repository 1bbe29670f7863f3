// SPDX-License-Identifier: BSD-3-Clause
// Ranks as a grid of 2 x 2. Along "tp", they share the hidden layer of a model: each computes a term of the output, and
// an all-reduce within the compiled forward adds up the terms. Along "dp", they share the batch, and
// DistributedDataParallel averages the gradients. In addition, each rank trains the whole model on the whole batch.
// Both results must agree.
#include <cstdio>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <rehearse/comm/functional.h>
#include <rehearse/compile/compile.h>
#include <rehearse/compile/watch.h>
#include <rehearse/job/program.h>
#include <rehearse/job/rank_context.h>
#include <rehearse/parallel/device_mesh.h>
#include <rehearse/parallel/distributed_data_parallel.h>

namespace {

constexpr std::int64_t kRows = 8, kIn = 6, kHidden = 8, kOut = 4;

at::Tensor weights(std::int64_t rows, std::int64_t columns) {
  return at::sin(at::arange(rows * columns, at::kDouble)).view({rows, columns}) / 3;
}

torch::nn::Linear linear_of(const at::Tensor& weight) {
  torch::nn::Linear linear(torch::nn::LinearOptions(weight.size(1), weight.size(0)).bias(false));
  linear->to(at::kDouble);
  const at::NoGradGuard no_grad;
  linear->weight.copy_(weight);
  return linear;
}

// The rank's rows of the first layer and its columns of the second layer.
struct ShardImpl : torch::nn::Module {
  explicit ShardImpl(const rehearse::DeviceMesh& mesh) : tp(mesh) {
    const std::int64_t size = kHidden / tp.size(), first = size * tp.local_rank();
    up = register_module("up", linear_of(weights(kHidden, kIn).narrow(0, first, size)));
    down = register_module("down", linear_of(weights(kOut, kHidden).narrow(1, first, size)));
  }

  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor term = down(at::relu(up(x)));
    const at::Tensor sum = rehearse::functional::all_reduce(term.detach(), rehearse::watch(tp).group());
    return term + (sum - term).detach();  // the gradient of the sum is that of each term
  }

  rehearse::DeviceMesh tp;
  torch::nn::Linear up = nullptr, down = nullptr;
};
TORCH_MODULE(Shard);

at::Tensor loss_of(const at::Tensor& y) { return y.square().mean(); }

// The whole batch of a step.
at::Tensor batch_of(std::int64_t step) {
  return at::cos(at::arange(kRows * kIn, at::kDouble) * 0.3 + static_cast<double>(step)).view({kRows, kIn});
}

void train(rehearse::RankContext& ctx, const rehearse::Parameters& parameters) {
  const rehearse::DeviceMesh mesh(ctx, {2, 2}, {"dp", "tp"});
  const rehearse::Group &dp = mesh.group("dp"), &tp = mesh.group("tp");
  const auto line =
      fmt::format("rank {}: {} of {}, {} of {}", ctx.rank(), dp.name(), dp.ranks(), tp.name(), tp.ranks());
  std::puts(line.c_str());

  Shard shard(mesh["tp"]);
  rehearse::DistributedDataParallel ddp(shard, dp);
  auto forward = rehearse::compile(ddp, {.fullgraph = true});
  torch::optim::SGD optimizer(ddp.parameters(), 0.1);
  at::Tensor up = weights(kHidden, kIn).requires_grad_(), down = weights(kOut, kHidden).requires_grad_();

  const std::int64_t rows = kRows / mesh.size("dp");
  for (std::int64_t step = 0; step < parameters.integer("steps"); ++step) {
    const at::Tensor x = batch_of(step);
    ddp.zero_grad();
    const at::Tensor loss = loss_of(forward(x.narrow(0, rows * mesh.local_rank("dp"), rows)));
    loss.backward();
    optimizer.step();

    const at::Tensor whole = loss_of(at::relu(x.matmul(up.t())).matmul(down.t()));
    const auto gradients = torch::autograd::grad({whole}, {up, down});
    const at::NoGradGuard no_grad;
    up.sub_(gradients[0], 0.1);
    down.sub_(gradients[1], 0.1);
    ctx.progress(step + 1, parameters.integer("steps"), "loss " + std::to_string(whole.item<double>()));
  }
  const std::int64_t size = kHidden / tp.size(), first = size * tp.rank();
  ctx.expect(at::allclose(shard->up->weight, up.narrow(0, first, size), 0, 1e-12) &&
                 at::allclose(shard->down->weight, down.narrow(1, first, size), 0, 1e-12),
             "the shards are those of the whole model");
  ctx.expect(forward.stats().compiles == 1, "one compilation serves all steps");
  if (parameters.flag("forgets") && ctx.rank() == 2) return;
  tp.barrier()->wait();
}

REHEARSE_PROGRAM(mesh_2d){.summary = "a mesh of 2 x 2: an all-reduce inside of compiled code, and DDP across it",
                          .parameters = {{"steps", std::int64_t{4}, "training steps", 1, 1000},
                                         {"forgets", false, "rank 2 leaves before the barrier of its line"}},
                          .body = train};

}  // namespace
