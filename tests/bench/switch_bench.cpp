// SPDX-License-Identifier: BSD-3-Clause
// Time of a switch between ranks, compared with a plain Boost.Fiber yield in the same run. Also the time of a
// FiberLocal access.
#include <functional>
#include <thread>
#include <vector>

#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>
#include <benchmark/benchmark.h>
#include <boost/fiber/fiber.hpp>
#include <boost/fiber/operations.hpp>

#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <rehearse_internal/exec/executor.h>
#include <rehearse_internal/exec/fiber_local.h>
#include <rehearse_internal/exec/this_rank.h>
#include <rehearse_internal/sim/oracles.h>
#include <rehearse_internal/sim/virtual_clock.h>
#include <rehearse_internal/torch_state/torch_state.h>

#include "bench/cpu_time.h"
#include "core/exec/no_rank_state.h"

namespace rehearse::bench {
namespace {

constexpr int kYields = 2'000;

class IgnoreFailures final : public exec::FailureSink {
 public:
  Verdict on_rank_failure(const exec::RankFailure&) override { return Verdict::end_world; }
};

using Yields = std::function<void()>;

void at_once(const Yields& yields) { yields(); }

// Suspended inside a backward pass, a fiber has more state of its own than a fiber that has touched nothing.
void in_backward(const Yields& yields) {
  const at::Tensor leaf = at::ones({2}).requires_grad_();
  const at::Tensor product = at::mul(leaf, leaf);
  product.register_hook([&](const at::Tensor&) {
    const c10::AutoGradMode no_grad(false);
    yields();
  });
  torch::autograd::backward({product.sum()}, {});
}

// CPU seconds per switch, from the time when all fibers have started until rank 0 is done.
double switches_of_ranks(int ranks, exec::RankState& state, Oracle& oracle, void (*inside)(const Yields&) = at_once) {
  DecisionLog log;
  Decisions decisions(oracle, log);
  sim::VirtualClock clock;
  IgnoreFailures sink;
  exec::RankExecutor executor({.ranks = ranks}, decisions, clock, state, sink);
  double start = 0;
  double end = 0;
  executor.run([&](int rank) {
    inside([&] {
      exec::this_rank::yield();
      if (rank == 0) start = cpu_seconds();
      for (int i = 0; i < kYields; ++i) exec::this_rank::yield();
      if (rank == 0) end = cpu_seconds();
    });
  });
  return (end - start) / (static_cast<double>(kYields) * ranks);
}

double plain_yields(int fibers) {
  double start = 0;
  double end = 0;
  // On another thread, Boost's own round robin schedules the fibers, not our scheduler.
  std::thread([&] {
    std::vector<boost::fibers::fiber> running;
    for (int id = 0; id < fibers; ++id) {
      running.emplace_back([&, id] {
        boost::this_fiber::yield();
        if (id == 0) start = cpu_seconds();
        for (int i = 0; i < kYields; ++i) boost::this_fiber::yield();
        if (id == 0) end = cpu_seconds();
      });
    }
    for (auto& fiber : running) fiber.join();
  }).join();
  return (end - start) / (static_cast<double>(kYields) * fibers);
}

void with_rank_state(benchmark::State& state) {
  torch_state::TorchRankState rank_state;
  for (auto _ : state) {
    sim::RoundRobinOracle oracle;
    state.SetIterationTime(switches_of_ranks(static_cast<int>(state.range(0)), rank_state, oracle));
  }
}

void with_rank_state_in_backward(benchmark::State& state) {
  torch_state::TorchRankState rank_state;
  for (auto _ : state) {
    sim::RoundRobinOracle oracle;
    state.SetIterationTime(switches_of_ranks(static_cast<int>(state.range(0)), rank_state, oracle, in_backward));
  }
}

void with_rank_state_random(benchmark::State& state) {
  torch_state::TorchRankState rank_state;
  for (auto _ : state) {
    sim::RandomOracle oracle(1);
    state.SetIterationTime(switches_of_ranks(static_cast<int>(state.range(0)), rank_state, oracle));
  }
}

void without_state(benchmark::State& state) {
  exec::NoRankState none;
  for (auto _ : state) {
    sim::RoundRobinOracle oracle;
    state.SetIterationTime(switches_of_ranks(static_cast<int>(state.range(0)), none, oracle));
  }
}

void plain(benchmark::State& state) {
  for (auto _ : state) state.SetIterationTime(plain_yields(static_cast<int>(state.range(0))));
}

// CPU seconds per access, in a world of one rank.
void look_up_fiber_local(benchmark::State& state) {
  static const exec::FiberLocal<std::int64_t> local;
  constexpr int kLookUps = 1'000'000;
  exec::NoRankState none;
  for (auto _ : state) {
    sim::RoundRobinOracle oracle;
    DecisionLog log;
    Decisions decisions(oracle, log);
    sim::VirtualClock clock;
    IgnoreFailures sink;
    exec::RankExecutor executor({.ranks = 1}, decisions, clock, none, sink);
    executor.run([&](int) {
      *local = 0;
      const double start = cpu_seconds();
      for (int i = 0; i < kLookUps; ++i) ++*local;
      state.SetIterationTime((cpu_seconds() - start) / kLookUps);
    });
  }
}

void arguments(benchmark::internal::Benchmark* bench) {
  bench->Arg(2)->Arg(8)->Arg(64)->Arg(1024)->UseManualTime()->Iterations(20)->Unit(benchmark::kNanosecond);
}

BENCHMARK(plain)->Name("fiber_switch/plain")->Apply(arguments);
BENCHMARK(without_state)->Name("fiber_switch/no_state")->Apply(arguments);
BENCHMARK(with_rank_state)->Name("fiber_switch/rank_state")->Apply(arguments);
BENCHMARK(with_rank_state_in_backward)->Name("fiber_switch/rank_state_in_backward")->Apply(arguments);
BENCHMARK(with_rank_state_random)->Name("fiber_switch/rank_state_random")->Apply(arguments);
BENCHMARK(look_up_fiber_local)->Name("fiber_local/get")->UseManualTime()->Iterations(20)->Unit(benchmark::kNanosecond);

}  // namespace
}  // namespace rehearse::bench
