// SPDX-License-Identifier: BSD-3-Clause
// CPU time of FullyShardedDataParallel, per rank: a training step (forward, backward, SGD) of a transformer, compared
// with the same step under DistributedDataParallel. The two steps take turns in the same run. `ratio` is the least time
// under FullyShardedDataParallel, divided by the least time under DistributedDataParallel.
#include <algorithm>
#include <limits>
#include <memory>
#include <stdexcept>

#include <ATen/ops/ones.h>
#include <benchmark/benchmark.h>
#include <torch/optim/sgd.h>

#include <rehearse/parallel/distributed_data_parallel.h>
#include <rehearse/parallel/fsdp.h>
#include <rehearse/sim/world.h>

#include "bench/cpu_time.h"
#include "core/parallel/fsdp/reference_models.h"

namespace rehearse::bench {
namespace {

using rehearse_test::ReferenceTransformer;

struct Size {
  int depth;
  std::int64_t width, heads, batch, time;
};

// CPU seconds per rank of one step, after a step that warms up.
template <class Wrap>
double step_seconds(const Size& size, int ranks, Wrap&& wrap) {
  double start = 0;
  World world({.ranks = ranks});
  const auto report = world.run([&](RankContext& ctx) {
    const auto net = std::make_shared<ReferenceTransformer>(size.depth, size.width, size.heads);
    const auto model = wrap(net, ctx);
    torch::optim::SGD optimizer(model->parameters(), 0.01);
    const auto x = at::ones({size.batch, size.time, size.width});
    for (int step = 0; step < 2; ++step) {
      ctx.group().barrier()->wait();
      if (step == 1 && ctx.rank() == 0) start = cpu_seconds();
      model->zero_grad();
      model->forward(x).square().mean().backward();
      optimizer.step();
    }
    ctx.group().barrier()->wait();
  });
  if (report.verdict != Verdict::ok) throw std::runtime_error(report.headline);
  return (cpu_seconds() - start) / ranks;
}

double ddp_seconds(const Size& size, int ranks) {
  return step_seconds(size, ranks, [](const auto& net, RankContext& ctx) {
    return std::make_unique<DistributedDataParallel<std::shared_ptr<ReferenceTransformer>>>(net, ctx.group());
  });
}

double fsdp_seconds(const Size& size, int ranks) {
  return step_seconds(size, ranks, [](const auto& net, RankContext& ctx) {
    return fully_shard(net, ctx.group(), {.units = UnitPolicy::of_type<rehearse_test::ReferenceBlockImpl>()});
  });
}

void fsdp_step(benchmark::State& state, const Size& size) {
  const int ranks = static_cast<int>(state.range(0));
  double ddp = std::numeric_limits<double>::max(), fsdp = ddp;
  for (auto _ : state) {
    ddp = std::min(ddp, ddp_seconds(size, ranks));
    fsdp = std::min(fsdp, fsdp_seconds(size, ranks));
  }
  state.counters["ddp_ms"] = ddp * 1e3;
  state.counters["fsdp_ms"] = fsdp * 1e3;
  state.counters["ratio"] = fsdp / ddp;
}

BENCHMARK_CAPTURE(fsdp_step, width_512, Size{12, 512, 8, 8, 128})->Arg(2)->Iterations(2)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(fsdp_step, width_64, Size{12, 64, 4, 2, 16})->Arg(2)->Iterations(5)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(fsdp_step, width_8, Size{4, 8, 2, 1, 4})->Arg(2)->Iterations(5)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rehearse::bench
