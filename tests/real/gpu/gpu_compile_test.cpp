// SPDX-License-Identifier: BSD-3-Clause
// Contract: DDP's buckets cut a model into pieces. The compiled pieces train on GPUs as the model does in eager mode,
// bit for bit. Storages are resized on GPUs as on the CPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/ATen.h>

#include <rehearse/capture/storage.h>
#include <rehearse/compile/compile.h>
#include <rehearse/parallel/distributed_data_parallel.h>

#include "bit_equal.h"
#include "core/parallel/ddp_fixture.h"
#include "gpu_world.h"

namespace rehearse::real {
namespace {

using rehearse::test::BitEqual;

class GpuCompile : public GpuWorld {
 protected:
  void SetUp() override { REHEARSE_REQUIRE_GPUS(2); }

  // Rank 0's parameters after some steps with batches of two sizes.
  template <class ForwardOf>
  static std::vector<at::Tensor> parameters_after(ForwardOf forward_of) {
    std::vector<at::Tensor> parameters;
    const auto report = run(on_gpus(2), [&](RankContext& ctx) {
      rehearse_test::Mlp model(6, 64, 3);
      rehearse_test::fill(*model);
      model->to(ctx.device());
      DistributedDataParallel ddp(model, ctx.group(), {.bucket_cap_mb = 0.01, .first_bucket_bytes = 1024});
      auto forward = forward_of(ddp);
      for (int step = 0; step < 6; ++step) {
        const auto batch = rehearse_test::batch_of(ctx.rank(), step, step % 2 == 0 ? 4 : 7).to(ctx.device());
        forward(batch).pow(2).sum().backward();
        rehearse_test::descend(model->parameters(), 0.01);
        for (auto& each : model->parameters()) each.mutable_grad().zero_();
      }
      if (ctx.rank() == 0) {
        for (const auto& each : model->parameters()) parameters.push_back(each.detach().cpu());
      }
    });
    EXPECT_TRUE(has_verdict(report, Verdict::ok));
    return parameters;
  }
};

TEST_F(GpuCompile, Pieces_TrainAsTheModelDoes) {
  const auto as_it_is =
      parameters_after([](auto& ddp) { return [&ddp](const at::Tensor& x) { return ddp.forward(x); }; });
  const auto in_pieces =
      parameters_after([](auto& ddp) { return rehearse::compile(ddp, {.backend = "aot_eager", .fullgraph = true}); });
  EXPECT_THAT(in_pieces, BitEqual(as_it_is));
}

// A resize keeps the first bytes, also if the stream has not written them yet.
TEST_F(GpuWorld, ResizedStorage_KeepsItsBytes) {
  const auto report = run(on_gpus(1), [](RankContext& ctx) {
    const at::Tensor x = at::arange(1 << 20, at::TensorOptions(at::kFloat).device(ctx.device()));
    const at::Tensor half = at::arange(1 << 19, x.options());
    for (int i = 0; i < 10; ++i) {
      x.add_(1);
      resize_storage(x, static_cast<std::int64_t>(half.nbytes()));
      resize_storage(x, static_cast<std::int64_t>(x.nbytes()));
      EXPECT_THAT(x.slice(0, 0, half.size(0)), BitEqual(half + (i + 1))) << i;
    }
  });
  EXPECT_TRUE(has_verdict(report, Verdict::ok));
}

}  // namespace
}  // namespace rehearse::real
