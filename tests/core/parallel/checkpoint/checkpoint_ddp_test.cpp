// SPDX-License-Identifier: BSD-3-Clause
// Contract: on every rank, a DDP model whose layers are checkpoints trains like the same model without checkpoints.
// This holds with find_unused_parameters and with a static graph, each with and without gradient_as_bucket_view.
#include <rehearse/parallel/checkpoint.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bit_equal.h"
#include "core/parallel/ddp_fixture.h"

namespace {

using namespace rehearse_test;
using rehearse::DistributedDataParallel;
using rehearse::DistributedDataParallelOptions;
using rehearse::RankContext;
using rehearse::test::BitEqual;

struct CheckpointedMlpImpl : torch::nn::Module {
  explicit CheckpointedMlpImpl(bool saves) : saves_(saves) {
    for (auto* const each : {&net, &unused}) *each = Mlp(6, 16, 6);
    register_module("net", net);
    register_module("unused", unused);
  }
  at::Tensor forward(const at::Tensor& x) {
    const auto layer = [this](const at::Tensor& h) { return at::dropout(net(h), 0.25, true); };
    const at::Tensor h = saves_ ? rehearse::checkpoint(layer, x) : layer(x);
    return saves_ ? rehearse::checkpoint([this](const at::Tensor& t) { return net->first(t).tanh(); }, h)
                  : net->first(h).tanh();
  }

  Mlp net{nullptr}, unused{nullptr};

 private:
  bool saves_;
};
TORCH_MODULE(CheckpointedMlp);

std::vector<at::Tensor> train(RankContext& ctx, bool saves, const DistributedDataParallelOptions& options) {
  at::manual_seed(17 + static_cast<std::uint64_t>(ctx.rank()));
  CheckpointedMlp net(saves);
  fill(*net);
  DistributedDataParallel ddp(net, ctx.group(), options);
  std::vector<at::Tensor> found;
  for (int step = 0; step < 3; ++step) {
    ddp.zero_grad(/*set_to_none=*/!options.gradient_as_bucket_view);
    ddp.forward(batch_of(ctx.rank(), step)).square().sum().backward();
    for (const at::Tensor& each : gradient_copies(ddp.parameters())) found.push_back(each);
    descend(ddp.parameters(), 0.0625);
  }
  return found;
}

TEST(CheckpointUnderDdp, TrainsAsWithoutIt) {
  for (const bool views : {false, true}) {
    for (const bool is_static : {false, true}) {
      DistributedDataParallelOptions options;
      options.bucket_cap_mb = 0.001;
      options.find_unused_parameters = !is_static;
      options.static_graph = is_static;
      options.gradient_as_bucket_view = views;
      for_ranks_and_seeds([&](RankContext& ctx) {
        EXPECT_THAT(train(ctx, true, options), BitEqual(train(ctx, false, options))) << views << is_static;
      });
    }
  }
}

}  // namespace
