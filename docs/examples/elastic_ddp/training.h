// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/ATen.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <rehearse/elastic/checkpoint.h>
#include <rehearse/job/rank_context.h>
#include <rehearse/parallel/distributed_data_parallel.h>

// A small job that survives the loss of ranks.
namespace elastic_ddp {

struct NetImpl : torch::nn::Module {
  NetImpl()
      : hidden(register_module("hidden", torch::nn::Linear(4, 8))),
        output(register_module("output", torch::nn::Linear(8, 1))) {}

  at::Tensor forward(const at::Tensor& x) { return output(at::tanh(hidden(x))); }

  torch::nn::Linear hidden, output;
};
TORCH_MODULE(Net);

struct Job {
  std::int64_t steps = 8;
  std::int64_t rows = 12;       // in each step, over all ranks
  std::int64_t save_every = 1;  // in steps
};

// The rows of one rank. Each rank computes them by itself; a step has the same rows however many ranks share them.
inline at::Tensor inputs_of(const rehearse::Group& group, std::int64_t step, std::int64_t rows) {
  const auto all = at::sin(at::arange(rows * 4, at::kFloat).view({rows, 4}) * 0.37 + static_cast<double>(step) * 1.3);
  return all.tensor_split(group.size())[static_cast<std::size_t>(group.rank())];
}

template <class Ddp>
void train_step(Ddp& ddp, torch::optim::SGD& optimizer, const rehearse::Group& group, std::int64_t step,
                std::int64_t rows) {
  const auto x = inputs_of(group, step, rows);
  ddp.zero_grad();
  at::mse_loss(ddp.forward(x), x.sum(1, /*keepdim=*/true)).backward();
  optimizer.step();
}

inline torch::optim::SGDOptions with_momentum() { return torch::optim::SGDOptions(0.05).momentum(0.9); }

inline at::Tensor parameters_of(Net& net) {
  std::vector<at::Tensor> flat;
  for (const auto& parameter : net->parameters()) flat.push_back(parameter.detach().flatten());
  return at::cat(flat);
}

// Returns this rank's parameters at the end; undefined if the others had finished before this rank was back.
inline at::Tensor train(rehearse::RankContext& ctx, const Job& job, const rehearse::elastic::Options& options = {}) {
  at::Tensor parameters;
  const auto body = [&](rehearse::elastic::Round& round) {
    ctx.generator().set_current_seed(1);  // every round without a checkpoint begins with the same parameters
    Net net;
    torch::optim::SGD optimizer(net->parameters(), with_momentum());
    rehearse::elastic::Checkpoint checkpoint(round, *net, optimizer);
    auto step = checkpoint.load();
    ctx.result("took up at step", at::full({1}, step));
    rehearse::DistributedDataParallel ddp(net, round.group());
    while (step < job.steps) {
      ctx.progress(step, job.steps, "");
      train_step(ddp, optimizer, round.group(), step, job.rows);
      ++step;
      if (step % job.save_every == 0) checkpoint.save(step);
      if (round.group().size() < ctx.size()) round.let_in_waiting();
    }
    parameters = parameters_of(net);
  };
  return rehearse::elastic::run(ctx, body, options) ? parameters : at::Tensor();
}

}  // namespace elastic_ddp
