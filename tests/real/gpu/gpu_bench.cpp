// SPDX-License-Identifier: BSD-3-Clause
// The programs that ./dev gpu-check times on GPUs. torch_bench.py does the same with torch's processes. Rank 0 prints
// one line of JSON for each figure that a program measures itself.
#include <chrono>
#include <cmath>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <rehearse/job/program.h>
#include <rehearse/job/rank_context.h>
#include <rehearse/parallel/distributed_data_parallel.h>

namespace {

using rehearse::Parameters;
using rehearse::RankContext;
using std::chrono::steady_clock;

double microseconds_since(steady_clock::time_point began) {
  return std::chrono::duration<double, std::micro>(steady_clock::now() - began).count();
}

// Waits until the device has finished all work of the rank.
void drain(const at::Tensor& any) { static_cast<void>(any.flatten()[0].item<float>()); }

// One all-reduce after the other, each with a wait, as dist.all_reduce() does.
void time_allreduce(RankContext& ctx, const Parameters& parameters) {
  const auto count = parameters.integer("bytes") / 4;
  const auto times = parameters.integer("times");
  std::vector<at::Tensor> tensors{at::zeros({count}, at::TensorOptions(ctx.device()))};
  c10d::AllreduceOptions options;
  options.asyncOp = false;
  const auto loop = [&](std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) ctx.group()->allreduce(tensors, options)->wait();
    drain(tensors[0]);
  };
  loop(5);
  ctx.group().barrier()->wait();
  const auto began = steady_clock::now();
  loop(times);
  const auto each = microseconds_since(began) / static_cast<double>(times);
  if (ctx.rank() != 0) return;
  const double ranks = ctx.size();
  fmt::print("{{\"figure\": \"allreduce\", \"bytes\": {}, \"us\": {:.2f}, \"bus_GBps\": {:.1f}}}\n", count * 4, each,
             2 * (ranks - 1) / ranks * static_cast<double>(count * 4) / each / 1000);
}

// A training step of eight layers of width 4096, without the optimizer.
void time_ddp(RankContext& ctx, const Parameters& parameters) {
  constexpr int kLayers = 8;
  constexpr int kWidth = 4096;
  constexpr int kBatch = 512;
  const auto times = parameters.integer("times");
  torch::nn::Sequential model;
  for (int layer = 0; layer < kLayers; ++layer) {
    model->push_back(torch::nn::Linear(kWidth, kWidth));
    model->push_back(torch::nn::ReLU());
  }
  model->to(ctx.device());
  rehearse::DistributedDataParallel ddp(model, ctx.group(), {.gradient_as_bucket_view = true});
  const auto input = at::randn({kBatch, kWidth}, at::TensorOptions(ctx.device()));
  const auto loop = [&](std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) {
      ddp(input).sum().backward();
      for (auto& each : model->parameters()) each.mutable_grad().zero_();
    }
    drain(model->parameters()[0]);
  };
  loop(3);
  ctx.group().barrier()->wait();
  const auto began = steady_clock::now();
  loop(times);
  const auto each = microseconds_since(began) / static_cast<double>(times);
  if (ctx.rank() == 0) fmt::print("{{\"figure\": \"ddp_step\", \"us\": {:.0f}}}\n", each);
}

// Whoever starts this job measures the time of the whole job.
void start_up(RankContext& ctx, const Parameters&) {
  auto tensor = at::ones({1}, at::TensorOptions(ctx.device()));
  ctx.group().allreduce(tensor)->wait();
  ctx.expect(tensor.item<float>() == static_cast<float>(ctx.size()), "the sum is the number of ranks");
}

REHEARSE_PROGRAM(allreduce){.summary = "times all-reduces, one after the other",
                            .parameters = {{"bytes", std::int64_t{8}, "of the tensor", 4, 1e10},
                                           {"times", std::int64_t{100}, "all-reduces", 1, 1e6}},
                            .body = time_allreduce};
REHEARSE_PROGRAM(ddp_step){.summary = "times training steps of a large MLP under DDP",
                           .parameters = {{"times", std::int64_t{20}, "steps", 1, 1e6}},
                           .body = time_ddp};
REHEARSE_PROGRAM(start_up){.summary = "one all-reduce", .body = start_up};

}  // namespace
