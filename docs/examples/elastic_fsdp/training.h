// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <rehearse/elastic/run.h>
#include <rehearse/job/rank_context.h>
#include <rehearse/parallel/fsdp.h>

#include "sharded_checkpoint.h"

// A small sharded job that survives the loss of ranks.
namespace elastic_fsdp {

struct NetImpl : torch::nn::Module {
  NetImpl()
      : hidden(register_module("hidden", torch::nn::Linear(4, 8))),
        output(register_module("output", torch::nn::Linear(8, 1))) {
    to(at::kDouble);
  }

  at::Tensor forward(const at::Tensor& x) { return output(at::tanh(hidden(x))); }

  torch::nn::Linear hidden, output;
};
TORCH_MODULE(Net);

using Fsdp = rehearse::FullyShardedDataParallel<Net>;

struct Job {
  std::int64_t steps = 8;
  std::int64_t rows = 12;       // in each step, over all ranks
  std::int64_t save_every = 1;  // in steps
};

// Saves and loads the shards together with their momentum. The momentum of shard "w" has the name "momentum of w".
class Training {
 public:
  explicit Training(const rehearse::Group& group)
      : group_(group),
        fsdp_(net_, group, {.units = rehearse::UnitPolicy::of_type<torch::nn::LinearImpl>()}),
        optimizer_(fsdp_.parameters(), torch::optim::SGDOptions(0.05).momentum(0.9)) {}

  // A step has the same rows however many ranks share them. The loss is a mean, and gradients are averaged over ranks,
  // so use a number of rows that is divisible by every possible number of ranks.
  void step(std::int64_t number, std::int64_t rows) {
    const auto all = at::sin(at::arange(rows * 4, at::kDouble).view({rows, 4}) * 0.37 + number * 1.3);
    const auto x = all.tensor_split(group_.size())[static_cast<std::size_t>(group_.rank())];
    fsdp_.zero_grad();
    at::mse_loss(fsdp_.forward(x), x.sum(1, /*keepdim=*/true)).backward();
    optimizer_.step();
  }

  std::vector<rehearse::SavedRows> rows() {
    auto rows = fsdp_.sharded_state_dict();
    std::map<std::string, at::Tensor> shards;
    for (const auto& [name, shard] : fsdp_.named_parameters()) shards.emplace(name, shard);
    for (std::size_t i = 0, own = rows.size(); i < own; ++i) {
      const auto state = optimizer_.state().find(shards.at(rows[i].name).unsafeGetTensorImpl());
      if (state == optimizer_.state().end()) continue;
      const auto& momentum = static_cast<torch::optim::SGDParamState&>(*state->second).momentum_buffer();
      rows.push_back({kMomentum + rows[i].name, rows[i].sizes, rows[i].first_row, momentum.clone()});
    }
    return rows;
  }

  // `saved`: the rows() of all ranks of an earlier group, in one list. That group may have had any size.
  void load(const std::vector<rehearse::SavedRows>& saved) {
    std::vector<rehearse::SavedRows> of_model;
    std::map<std::string, at::Tensor> momenta;  // the whole tensors
    for (const auto& each : saved) {
      if (!each.name.starts_with(kMomentum)) {
        of_model.push_back(each);
        continue;
      }
      auto& whole = momenta.try_emplace(each.name, at::empty(each.sizes, each.rows.options())).first->second;
      whole.narrow(0, each.first_row, each.rows.size(0)).copy_(each.rows);
    }
    fsdp_.load_sharded_state_dict(of_model);
    for (const auto& [name, shard] : fsdp_.named_parameters()) {
      const auto momentum = momenta.find(kMomentum + name);
      if (momentum == momenta.end()) continue;
      auto state = std::make_unique<torch::optim::SGDParamState>();
      state->momentum_buffer(fsdp_.rows_like(name, momentum->second));
      optimizer_.state()[shard.unsafeGetTensorImpl()] = std::move(state);
    }
  }

  // The parameters of the whole model. All ranks must call it.
  at::Tensor parameters() const {
    std::vector<at::Tensor> flat;
    for (const auto& [name, tensor] : fsdp_.full_state_dict()) flat.push_back(tensor.flatten());
    return at::cat(flat);
  }

 private:
  static inline const std::string kMomentum = "momentum of ";

  rehearse::Group group_;
  Net net_;
  Fsdp fsdp_;
  torch::optim::SGD optimizer_;
};

// Returns the parameters of the whole model at the end; undefined if the others had finished before this rank was back.
inline at::Tensor train(rehearse::RankContext& ctx, const Job& job, const rehearse::elastic::Options& options = {}) {
  at::Tensor parameters;
  const auto body = [&](rehearse::elastic::Round& round) {
    ctx.generator().set_current_seed(1);  // every round without a checkpoint begins with the same parameters
    Training training(round.group());
    ShardedCheckpoint checkpoint(round);
    const auto last = checkpoint.load();
    if (last.steps > 0) training.load(last.rows);
    ctx.result("took up at step", at::full({1}, last.steps));
    for (auto step = last.steps; step < job.steps;) {
      ctx.progress(step, job.steps, "");
      training.step(step++, job.rows);
      if (step % job.save_every == 0) checkpoint.save(step, training.rows());
      if (round.group().size() < ctx.size()) round.let_in_waiting();
    }
    parameters = training.parameters();
  };
  return rehearse::elastic::run(ctx, body, options) ? parameters : at::Tensor();
}

}  // namespace elastic_fsdp
