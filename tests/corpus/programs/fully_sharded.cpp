// SPDX-License-Identifier: BSD-3-Clause
// Sharded parameters: memory freed too late or too early, gradients of the wrong dtype, and an export in the middle of
// a step.
#include <future>

#include <ATen/ATen.h>

#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <rehearse/parallel/fsdp.h>

#include "corpus/entry.h"

namespace corpus {
namespace {

using rehearse::FullyShardedDataParallel;
using rehearse::UnitPolicy;

at::Tensor own_rows(const RankContext& ctx, int step = 0) {
  return at::arange(8, at::kDouble).view({2, 4}).mul(0.1 * (ctx.rank() + 1)).add(0.3 * step);
}

void set_values(const torch::nn::Module& module) {
  const at::NoGradGuard no_grad;
  for (auto& each : module.parameters()) each.copy_(at::linspace(-1, 1, each.numel(), each.options()).view_as(each));
}

void expect_sharded(RankContext& ctx, const std::vector<rehearse::parallel::ShardUnitInfo>& units) {
  for (const auto& unit : units) ctx.expect(!unit.is_whole, "unit is sharded after backward", unit.name);
}

// A hand-made unit: its code gathers the rows of all ranks, and a hook on its output frees them.
class HookedUnit {
 public:
  HookedUnit(RankContext& ctx, std::int64_t rows) : ctx_(ctx), shard_(at::ones({rows, 4}, at::kDouble)) {}

  at::Tensor forward(const at::Tensor& x) {
    if (!whole_.defined()) {
      whole_ = at::empty({shard_.size(0) * ctx_.size(), 4}, at::kDouble);
      at::Tensor shard = shard_.clone();
      ctx_.group()->_allgather_base(whole_, shard)->wait();
      whole_.requires_grad_();
    }
    at::Tensor y = x.matmul(whole_.t());
    y.register_hook([this](const at::Tensor&) { free(); });
    return y;
  }
  void free() { whole_ = at::Tensor(); }

 private:
  RankContext& ctx_;
  at::Tensor shard_, whole_;
};

// On one rank, the loss does not use the hooked output. So the unit is still whole in the next step.
void frees_in_a_hook_of_the_output(RankContext& ctx, bool corrected) {
  HookedUnit unit(ctx, 2);
  for (int step = 0; step < 2; ++step) {
    const auto x = own_rows(ctx, step).requires_grad_();
    const auto y = unit.forward(x);
    const auto loss = ctx.rank() == 1 ? x.square().sum() : y.square().sum();
    loss.backward();
    if (corrected) unit.free();
    auto sum = loss.detach().clone();
    ctx.group().allreduce(sum)->wait();  // <- B108
  }
}

// A module that does not use its second argument, although the argument requires a gradient.
struct IgnoresImpl : torch::nn::Module {
  IgnoresImpl() : inner(register_module("inner", torch::nn::Linear(4, 4))) {}
  at::Tensor forward(const at::Tensor& x, const at::Tensor&) { return inner(x); }
  torch::nn::Linear inner;
};
TORCH_MODULE(Ignores);

struct HasFrozenImpl : torch::nn::Module {
  HasFrozenImpl()
      : learns(register_module("learns", torch::nn::Linear(4, 4))), frozen(register_module("frozen", Ignores())) {
    to(at::kDouble);
    set_values(*this);
    for (auto& each : frozen->parameters()) each.requires_grad_(false);
  }
  at::Tensor forward(const at::Tensor& x) {
    const auto learned = learns(x);
    return frozen(x, learned) * learned;
  }
  torch::nn::Linear learns;
  Ignores frozen;
};
TORCH_MODULE(HasFrozen);

// The backward must not free the frozen module's memory too early, but must have freed it at the end.
void freezes_a_module_with_an_unused_input(RankContext& ctx, bool) {
  FullyShardedDataParallel fsdp(HasFrozen(), ctx.group(), {.units = UnitPolicy::named({"learns", "frozen"})});
  for (int step = 0; step < 2; ++step) {
    fsdp.zero_grad();
    fsdp(own_rows(ctx, step)).square().mean().backward();
    expect_sharded(ctx, fsdp.units());
    ctx.check_gradients(fsdp, [&] {  // <- B109
      auto sum = at::zeros({}, at::kDouble);
      for (int rank = 0; rank < ctx.size(); ++rank) {
        const auto x = at::arange(8, at::kDouble).view({2, 4}).mul(0.1 * (rank + 1)).add(0.3 * step);
        sum = sum + fsdp.module().forward(x).square().mean();
      }
      return sum / ctx.size();
    });
  }
}

struct HeadImpl : torch::nn::Module {
  HeadImpl()
      : norm(register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({4})))),
        output(register_module("output", torch::nn::Linear(4, 3))) {
    to(at::kDouble);
    set_values(*this);
  }
  at::Tensor forward(const at::Tensor& x) { return output(norm(x)).square().sum(); }
  torch::nn::LayerNorm norm;
  torch::nn::Linear output;
};
TORCH_MODULE(Head);

// Half of a unit runs in one forward, and the other half, chunk by chunk, in other forwards.
void computes_its_loss_in_chunks(RankContext& ctx, bool) {
  Head net;
  FullyShardedDataParallel fsdp(net, ctx.group());
  for (int step = 0; step < 2; ++step) {
    fsdp.zero_grad();
    const auto hidden = fsdp.forward_with([&](const at::Tensor& x) { return net->norm(x); }, own_rows(ctx, step));
    const auto leaf = hidden.detach().requires_grad_();
    for (const auto& chunk : leaf.chunk(2)) {
      fsdp.forward_with([&](const at::Tensor& x) { return net->output(x).square().sum(); }, chunk).backward();
      expect_sharded(ctx, fsdp.units());
    }
    hidden.backward(leaf.grad());
    ctx.check_gradients(fsdp, [&] {  // <- B110
      auto sum = at::zeros({}, at::kDouble);
      for (int rank = 0; rank < ctx.size(); ++rank) {
        sum = sum + net->forward(at::arange(8, at::kDouble).view({2, 4}).mul(0.1 * (rank + 1)).add(0.3 * step));
      }
      return sum / ctx.size();
    });
  }
}

// A thread that waits for new replicas exports the model at any point of the training.
void exports_beside_the_step(RankContext& ctx, bool corrected) {
  torch::nn::Linear net(4, 3);
  net->to(at::kDouble);
  FullyShardedDataParallel fsdp(net, ctx.group());
  const auto heal = [&] { return fsdp.full_state_dict(); };  // <- B111
  if (corrected) heal();
  fsdp.forward_with(
      [&](const at::Tensor& x) {
        const auto y = net->forward(x);
        if (!corrected) std::async(std::launch::async, heal).get();
        return y;
      },
      own_rows(ctx));
}

// No parameter requires a gradient yet in the first forward. In the bug report, that forward chose the dtype of the
// reductions.
void unfreezes_after_the_first_forward(RankContext& ctx, bool) {
  torch::nn::Linear net(4, 3);
  const auto freeze = [&](bool on) {
    for (auto& each : net->parameters()) each.requires_grad_(!on);
  };
  freeze(true);
  const rehearse::FullyShardedMixedPrecision dtypes{.param_dtype = at::kBFloat16, .reduce_dtype = at::kFloat};
  FullyShardedDataParallel fsdp(net, ctx.group(), {.mixed_precision = dtypes});
  fsdp(own_rows(ctx).to(at::kFloat));
  freeze(false);
  fsdp(own_rows(ctx).to(at::kFloat)).sum().backward();  // <- B138
}

}  // namespace

Entries fully_sharded() {
  return {
      {"B108",
       frees_in_a_hook_of_the_output,
       {.ranks = 3},
       Verdict::mismatch,
       {1},
       "rank 1 called allreduce(sum, float64[], cpu) while ranks 0,2 called _allgather_base(float64[2, 4], cpu) as #3 "
       "of group \"world\": *"},
      {"B109", freezes_a_module_with_an_unused_input, {.ranks = 2}},
      {"B110", computes_its_loss_in_chunks, {.ranks = 2}},
      {"B111",
       exports_beside_the_step,
       {.ranks = 2},
       Verdict::rank_failed,
       {},
       "rank *: FSDP: full_state_dict() is called in a thread that did not make the FullyShardedDataParallel. "
       "*"},
      {"B138", unfreezes_after_the_first_forward, {.ranks = 2}},
  };
}

}  // namespace corpus
