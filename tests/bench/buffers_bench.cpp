// SPDX-License-Identifier: BSD-3-Clause
// CPU time of the memory checkers: a training step under DistributedDataParallel with each checker, and with both,
// compared with the same step without checkers. The variants take turns in one process. `ratio` is the least time with
// checkers, divided by the least time without.
//   wide   an MLP 1024-1024-1024-10, batch 8: memory traffic takes most of the time
//   deep   24 layers of 64, batch 8: small operators, so that the cost of boxing their arguments shows
// A second benchmark measures many all-gathers in flight at once, with all waits at the end.
#include <algorithm>
#include <limits>
#include <memory>
#include <stdexcept>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/zeros.h>
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

constexpr int kRanks = 8;
constexpr int kWarmSteps = 3;
constexpr int kSteps = 10;
constexpr int kRepetitions = 7;

torch::nn::Sequential net_of(int width, int layers) {
  torch::nn::Sequential net;
  for (int i = 0; i < layers; ++i) {
    net->push_back(torch::nn::Linear(width, width));
    net->push_back(torch::nn::ReLU());
  }
  net->push_back(torch::nn::Linear(width, 10));
  return net;
}

// CPU seconds per rank and step.
double step_seconds(WorldOptions options, int width, int layers) {
  double start = 0, end = 0;
  int done = 0;
  options.ranks = kRanks;
  options.explain_failures = false;
  World world(options);
  const Report report = world.run([&](RankContext& ctx) {
    DistributedDataParallel<torch::nn::Sequential> ddp(net_of(width, layers), ctx.group());
    torch::optim::SGD optimizer(ddp.parameters(), 0.01);
    const auto x = at::sin(at::arange(8 * width, at::kFloat)).view({8, width});
    for (int i = 0; i < kWarmSteps + kSteps; ++i) {
      if (i == kWarmSteps) ctx.group()->barrier()->wait();
      if (i == kWarmSteps && start == 0) start = cpu_seconds();
      ddp.zero_grad(true);
      at::mean(at::pow(ddp.forward(x), 2)).backward();
      optimizer.step();
    }
    if (++done == kRanks) end = cpu_seconds();
  });
  if (report.verdict != Verdict::ok) throw std::runtime_error(report.headline);
  return (end - start) / kSteps / kRanks;
}

// CPU seconds of a world in which each rank makes `calls` all-gathers and then waits for them all.
double in_flight_seconds(WorldOptions options, int ranks, int calls) {
  options.ranks = ranks;
  options.explain_failures = false;
  const double start = cpu_seconds();
  World world(options);
  const Report report = world.run([&](RankContext& ctx) {
    std::vector<Work> works;
    for (int i = 0; i < calls; ++i) {
      std::vector<at::Tensor> outputs;
      for (int rank = 0; rank < ctx.size(); ++rank) outputs.push_back(at::zeros({4}));
      works.push_back(ctx.group().allgather(outputs, at::ones({4})));
    }
    for (const auto& work : works) work->wait();
  });
  if (report.verdict != Verdict::ok) throw std::runtime_error(report.headline);
  return cpu_seconds() - start;
}

template <class Seconds>
void compare(benchmark::State& state, bool buffers, bool sharing, const Seconds& seconds_of) {
  WorldOptions with;
  with.check_buffers = buffers;
  with.check_sharing = sharing;
  double least = std::numeric_limits<double>::max(), least_without = least;
  for (auto _ : state) {
    least_without = std::min(least_without, seconds_of({.check_level = CheckLevel::none}));
    const double seconds = seconds_of(with);
    least = std::min(least, seconds);
    state.SetIterationTime(seconds);
  }
  state.counters["us"] = least * 1e6;
  state.counters["us_without"] = least_without * 1e6;
  state.counters["ratio"] = least / least_without;
}

void models(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"width", "layers"})->Args({1024, 2})->Args({64, 24});
  bench->UseManualTime()->Iterations(kRepetitions)->Unit(benchmark::kMicrosecond);
}

void step(benchmark::State& state, bool buffers, bool sharing) {
  const int width = static_cast<int>(state.range(0)), layers = static_cast<int>(state.range(1));
  compare(state, buffers, sharing, [&](const WorldOptions& options) { return step_seconds(options, width, layers); });
}

void calls_in_flight(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"ranks", "calls"})->Args({2, 10'000})->Args({4, 10'000});
  bench->UseManualTime()->Iterations(5)->Unit(benchmark::kMillisecond);
}

void in_flight(benchmark::State& state, bool buffers, bool sharing) {
  const int ranks = static_cast<int>(state.range(0)), calls = static_cast<int>(state.range(1));
  compare(state, buffers, sharing,
          [&](const WorldOptions& options) { return in_flight_seconds(options, ranks, calls); });
}

BENCHMARK_CAPTURE(step, buffers, true, false)->Name("ddp_step/check_buffers")->Apply(models);
BENCHMARK_CAPTURE(step, sharing, false, true)->Name("ddp_step/check_sharing")->Apply(models);
BENCHMARK_CAPTURE(step, both, true, true)->Name("ddp_step/both")->Apply(models);
BENCHMARK_CAPTURE(in_flight, buffers, true, false)->Name("in_flight/check_buffers")->Apply(calls_in_flight);
BENCHMARK_CAPTURE(in_flight, sharing, false, true)->Name("in_flight/check_sharing")->Apply(calls_in_flight);
BENCHMARK_CAPTURE(in_flight, both, true, true)->Name("in_flight/both")->Apply(calls_in_flight);

}  // namespace
}  // namespace rehearse::bench
