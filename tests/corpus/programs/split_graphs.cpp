// SPDX-License-Identifier: BSD-3-Clause
// Graphs that are cut at the ends of DDP's buckets, and values that must cross the cuts. The programs are correct; the
// compiler was wrong.
#include <ATen/ATen.h>

#include <cstdint>

#include <torch/nn/modules/linear.h>

#include <rehearse/compile/compile.h>
#include <rehearse/parallel/checkpoint.h>
#include <rehearse/parallel/distributed_data_parallel.h>

#include "corpus/entry.h"

namespace corpus {
namespace {

constexpr std::int64_t kWidth = 512;  // a weight of 1 MiB: a bucket of its own

struct TwoLayersImpl : torch::nn::Module {
  TwoLayersImpl()
      : first(register_module("first", torch::nn::Linear(kWidth, kWidth))),
        second(register_module("second", torch::nn::Linear(kWidth, kWidth))) {}
  torch::nn::Linear first, second;
};

// The first piece knows the batch size, and the second piece uses it.
struct UsesASizeImpl : TwoLayersImpl {
  at::Tensor forward(const at::Tensor& x) {
    const auto rows = x.sym_size(0);
    return second(first(x).relu()).view_symint({rows, 2, -1});
  }
};
TORCH_MODULE(UsesASize);

// The first piece's result is transposed in memory.
struct TransposesImpl : TwoLayersImpl {
  at::Tensor forward(const at::Tensor& x) { return second(first(x).t().contiguous().t().tanh()); }
};
TORCH_MODULE(Transposes);

// The checkpoint's code runs both layers. A bucket ends inside of that code, so the graph must stay whole.
struct RunsAgainImpl : TwoLayersImpl {
  at::Tensor forward(const at::Tensor& x) {
    return rehearse::checkpoint([this](const at::Tensor& h) { return second(first(h).tanh()).tanh(); }, x.cos());
  }
};
TORCH_MODULE(RunsAgain);

at::Tensor batch(int rank, std::int64_t rows) {
  return at::sin(at::arange(rows * kWidth, at::kFloat).view({rows, kWidth}) + rank);
}

// Outputs and gradients must be those of the module in eager mode, for batches of several sizes.
template <class Net>
void trains_in_pieces(RankContext& ctx, std::int64_t pieces = 2) {
  ctx.generator().set_current_seed(1);
  Net net;
  rehearse::DistributedDataParallel ddp(net, ctx.group(), {.bucket_cap_mb = 1, .first_bucket_bytes = 1 << 20});
  auto compiled = rehearse::compile(ddp, {.backend = "aot_eager", .fullgraph = true});
  for (const std::int64_t rows : {4, 6, 9}) {
    ddp.zero_grad();
    const auto y = compiled(batch(ctx.rank(), rows));
    ctx.expect(at::equal(y, net->forward(batch(ctx.rank(), rows))), "the pieces give what the module gives");
    y.square().mean().backward();
    ctx.check_gradients(ddp, [&] {
      const auto loss_of = [&](int rank) { return net->forward(batch(rank, rows)).square().mean(); };
      return (loss_of(0) + loss_of(1)) / 2;
    });
  }
  ctx.expect(compiled.stats().graphs == pieces * compiled.stats().compiles, "it is cut where it can be");
}

void passes_a_size_over_a_cut(RankContext& ctx, bool) {
  trains_in_pieces<UsesASize>(ctx);  // <- B061
}

void runs_both_layers_again(RankContext& ctx, bool) {
  trains_in_pieces<RunsAgain>(ctx, 1);  // <- B062
}

void passes_another_layout_over_a_cut(RankContext& ctx, bool) {
  trains_in_pieces<Transposes>(ctx);  // <- B063
}

}  // namespace

Entries split_graphs() {
  return {
      {"B061", passes_a_size_over_a_cut, {.ranks = 2}},
      {"B062", runs_both_layers_again, {.ranks = 2}},
      {"B063", passes_another_layout_over_a_cut, {.ranks = 2}},
  };
}

}  // namespace corpus
