// SPDX-License-Identifier: BSD-3-Clause
// CPU time of the state checkers, per rank: a DDP step (an MLP 1024-1024-1024-10, batch 8, SGD) with a checker that
// looks at every step, compared with the same step without a checker. The variants take turns. `ratio` is the least
// time with the checker, divided by the least time without.
//   state_checks/replicas, /draws, /finite   [checks] of the world
//   state_checks/called                      ctx.check_replicas() and ctx.check_finite() after each step
#include <algorithm>
#include <limits>
#include <stdexcept>

#include <ATen/ops/arange.h>
#include <benchmark/benchmark.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <rehearse/parallel/distributed_data_parallel.h>
#include <rehearse/sim/world.h>

#include "bench/cpu_time.h"

namespace rehearse::bench {
namespace {

constexpr int kWarmSteps = 3;
constexpr int kSteps = 6;
constexpr int kRepetitions = 3;

// CPU seconds per rank and step.
double training(int ranks, const checks::AutomaticChecks& checks, bool called) {
  double start = 0, end = 0;
  int done = 0;
  World world({.ranks = ranks, .checks = checks, .explain_failures = false});
  const Report report = world.run([&](RankContext& ctx) {
    using namespace torch::nn;
    Sequential net(Linear(1024, 1024), ReLU(), Linear(1024, 1024), ReLU(), Linear(1024, 10));
    DistributedDataParallel ddp(net, ctx.group());
    torch::optim::SGD optimizer(ddp.parameters(), 0.01);
    const auto x = at::arange(8 * 1024, at::kFloat).sin().view({8, 1024});
    for (int step = 0; step < kWarmSteps + kSteps; ++step) {
      if (step == kWarmSteps) {
        ctx.group()->barrier()->wait();
        if (start == 0) start = cpu_seconds();
      }
      ddp.zero_grad();
      ddp(x).pow(2).mean().backward();
      optimizer.step();
      if (!called) continue;
      ctx.check_replicas(ddp);
      ctx.check_finite(ddp);
    }
    if (++done == ranks) end = cpu_seconds();
  });
  if (report.verdict != Verdict::ok) throw std::runtime_error(report.headline);
  return (end - start) / kSteps / ranks;
}

void compare(benchmark::State& state, const checks::AutomaticChecks& checks, bool called) {
  const int ranks = static_cast<int>(state.range(0));
  double least = std::numeric_limits<double>::max(), least_without = least;
  for (auto _ : state) {
    least_without = std::min(least_without, training(ranks, {}, false));
    const double seconds = training(ranks, checks, called);
    least = std::min(least, seconds);
    state.SetIterationTime(seconds);
  }
  state.counters["ms"] = least * 1e3;
  state.counters["reference_ms"] = least_without * 1e3;
  state.counters["ratio"] = least / least_without;
}

void replicas(benchmark::State& state) { compare(state, {.replicas = true}, false); }
void draws(benchmark::State& state) { compare(state, {.draws = checks::Draws::same}, false); }
void finite(benchmark::State& state) { compare(state, {.finite = true}, false); }
void called(benchmark::State& state) { compare(state, {}, true); }

void few_times(benchmark::internal::Benchmark* bench) {
  bench->ArgName("ranks")->Arg(8)->UseManualTime()->Iterations(kRepetitions)->Unit(benchmark::kMillisecond);
}

BENCHMARK(replicas)->Name("state_checks/replicas")->Apply(few_times);
BENCHMARK(draws)->Name("state_checks/draws")->Apply(few_times);
BENCHMARK(finite)->Name("state_checks/finite")->Apply(few_times);
BENCHMARK(called)->Name("state_checks/called")->Apply(few_times);

}  // namespace
}  // namespace rehearse::bench
