// SPDX-License-Identifier: BSD-3-Clause
// DistributedDataParallel, over LibTorch's own reducer.
#include <ATen/ATen.h>

#include <torch/nn/modules/linear.h>

#include <rehearse/parallel/distributed_data_parallel.h>

#include "corpus/entry.h"

namespace corpus {
namespace {

using rehearse::DistributedDataParallel;

// Five batches on rank 0, six on rank 1.
void trains_on_uneven_data(RankContext& ctx, bool corrected) {
  DistributedDataParallel ddp(torch::nn::Linear(4, 1), ctx.group());
  const auto train = [&] {
    const int batches = ctx.rank() == 0 ? 5 : 6;
    for (int batch = 0; batch < batches; ++batch) ddp.forward(at::ones({2, 4})).sum().backward();  // <- B071
  };
  if (corrected) {
    ddp.join(train);
  } else {
    train();
  }
}

struct TwoHeadsImpl : torch::nn::Module {
  TwoHeadsImpl() : a(register_module("a", torch::nn::Linear(4, 1))), b(register_module("b", torch::nn::Linear(4, 1))) {}
  at::Tensor forward(const at::Tensor& x, bool both) { return both ? a(x) + b(x) : a(x); }
  torch::nn::Linear a, b;
};
TORCH_MODULE(TwoHeads);

// In the first step, static_graph records that head b is used. Later steps do not use it.
void uses_a_head_in_the_first_step(RankContext& ctx, bool corrected) {
  DistributedDataParallel ddp(TwoHeads(), ctx.group(), {.static_graph = true});
  for (int step = 0; step < 3; ++step) {
    auto output = ddp.forward(at::ones({2, 4}), corrected || step == 0);  // <- B117
    output.sum().backward();
  }
}

}  // namespace

Entries data_parallel() {
  return {
      {"B071",
       trains_on_uneven_data,
       {.ranks = 2},
       Verdict::deadlock,
       {0},
       "allreduce #10 of \"DDP bucket 0 of 1: bias, weight\" on group \"world\": rank 0 has ended and will never come"},
      {"B117",
       uses_a_head_in_the_first_step,
       {.ranks = 2},
       Verdict::rank_failed,
       {},
       "rank *: Expected to have finished reduction in the prior iteration before starting a new one (no gradient came "
       "for parameters: b.weight, b.bias of DDP bucket 0 of 1 on group \"world\")"},
  };
}

}  // namespace corpus
