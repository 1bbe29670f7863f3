// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include <rehearse/parallel/fsdp.h>

#include "core/parallel/ddp_fixture.h"

namespace rehearse_test {

// The units "first", "second" and "third" of an Mlp.
inline const rehearse::UnitPolicy kEachLinear = rehearse::UnitPolicy::of_type<torch::nn::LinearImpl>();

// This rank's rows of each tensor, cut as torch.chunk() does. Undefined tensors stay undefined.
inline std::vector<at::Tensor> rows_of(const std::vector<at::Tensor>& tensors, const rehearse::RankContext& ctx) {
  std::vector<at::Tensor> rows;
  for (const auto& each : tensors) {
    if (!each.defined()) {
      rows.emplace_back();
      continue;
    }
    const std::int64_t chunk = (each.size(0) + ctx.size() - 1) / ctx.size();
    const std::int64_t from = std::min(ctx.rank() * chunk, each.size(0));
    rows.push_back(each.narrow(0, from, std::min(from + chunk, each.size(0)) - from));
  }
  return rows;
}

// Returns the mean over ranks of the gradients of `loss_of(net, batch of the rank)`, computed in one process.
template <class Loss>
std::vector<at::Tensor> mean_gradients(int ranks, Loss&& loss_of) {
  Mlp net;
  fill(*net);
  for (int rank = 0; rank < ranks; ++rank) (loss_of(net, batch_of(rank, 0)) / ranks).backward();
  return gradient_copies(net->parameters());
}

// Expects that each rank of a sharded model has its rows of mean_gradients(ranks, reference). `loss_of(fsdp, batch)`
// gets the sharded model and the rank's batch, and may call fsdp(batch).
template <class Loss, class Reference>
void expect_gradients(const rehearse::FullyShardedOptions& options, Loss&& loss_of, Reference&& reference) {
  for (const int ranks : {1, 2, 3, 8}) {
    SCOPED_TRACE(testing::Message() << ranks << " ranks");
    const auto expected = mean_gradients(ranks, reference);
    run_ranks({.ranks = ranks}, [&](rehearse::RankContext& ctx) {
      Mlp net;
      fill(*net);
      rehearse::FullyShardedDataParallel fsdp(net, ctx.group(), options);
      for (int step = 0; step < 2; ++step) {  // the second step prefetches in forward
        fsdp.zero_grad();
        loss_of(fsdp, batch_of(ctx.rank(), 0)).backward();
        EXPECT_TRUE(close(gradient_copies(fsdp.parameters()), rows_of(expected, ctx))) << "step " << step;
      }
    });
  }
}

inline at::Tensor loss_of(const at::Tensor& output) { return output.square().sum(); }

}  // namespace rehearse_test
