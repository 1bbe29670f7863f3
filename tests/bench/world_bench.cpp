// SPDX-License-Identifier: BSD-3-Clause
// Collectives through c10d::ProcessGroup in a simulated world: CPU time per rank, and bytes per second over all ranks.
// `of_floor` is the time divided by that of c10d's own path: the same call on a ProcessGroup whose back end does
// nothing, plus one switch between ranks. Our path and c10d's own take turns. `start_up` is the time of a world with
// one barrier.
#include <string>
#include <vector>

#include <ATen/ops/add.h>
#include <ATen/ops/ones.h>
#include <benchmark/benchmark.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <rehearse/sim/world.h>
#include <rehearse_internal/exec/this_rank.h>

#include "bench/cpu_time.h"

namespace rehearse::bench {
namespace {

WorldOptions options_for(int ranks) {
  WorldOptions options;
  options.ranks = ranks;
  options.explain_failures = false;
  return options;
}

// CPU seconds for `rounds` calls of `operation` by every rank, from the time when all ranks are ready until the last
// rank is done.
template <class Operation>
double timed(int ranks, int rounds, Operation operation) {
  double start = 0;
  double end = 0;
  int done = 0;
  World world(options_for(ranks));
  const Report report = world.run([&](RankContext& ctx) {
    auto call = operation(ctx);
    call();
    ctx.group().barrier()->wait();
    if (start == 0) start = cpu_seconds();
    for (int i = 0; i < rounds; ++i) call();
    if (++done == ranks) end = cpu_seconds();
  });
  if (report.verdict != Verdict::ok) throw std::runtime_error(report.headline);
  return end - start;
}

class DoneWork final : public c10d::Work {
 public:
  bool isCompleted() override { return true; }
  bool wait(std::chrono::milliseconds) override { return true; }
};

class EmptyBackend final : public c10d::Backend {
 public:
  using c10d::Backend::Backend;
  const std::string getBackendName() const override { return "empty"; }
  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>&, const c10d::AllreduceOptions&) override {
    return c10::make_intrusive<DoneWork>();
  }
  c10::intrusive_ptr<c10d::Work> barrier(const c10d::BarrierOptions&) override {
    return c10::make_intrusive<DoneWork>();
  }
};

c10::intrusive_ptr<c10d::ProcessGroup> empty_group(const RankContext& ctx) {
  auto group = c10::make_intrusive<c10d::ProcessGroup>(nullptr, ctx.rank(), ctx.size());
  group->setBackend(c10::kCPU, c10d::ProcessGroup::BackendType::CUSTOM,
                    c10::make_intrusive<EmptyBackend>(ctx.rank(), ctx.size()));
  group->setDefaultBackend(c10d::ProcessGroup::BackendType::CUSTOM);
  return group;
}

// All ranks run `call(group)` in a loop, in turns on the world's group and on the group whose back end does nothing.
template <class MakeCall>
void with_floor(benchmark::State& state, MakeCall make_call) {
  const int ranks = static_cast<int>(state.range(0));
  const int rounds = 20'000 / ranks + 1;
  double total = 0;
  double floor = 0;
  for (auto _ : state) {
    const double seconds = timed(ranks, rounds, [&](RankContext& ctx) {
      const c10::intrusive_ptr<c10d::ProcessGroup> group = ctx.group();
      return [group, call = make_call()]() mutable { call(*group); };
    });
    floor += timed(ranks, rounds, [&](RankContext& ctx) {
      return [group = empty_group(ctx), call = make_call()]() mutable {
        call(*group);
        exec::this_rank::yield();
      };
    });
    total += seconds;
    state.SetIterationTime(seconds / rounds / ranks);
  }
  state.counters["floor_ns"] = floor / static_cast<double>(state.iterations()) / rounds / ranks * 1e9;
  state.counters["of_floor"] = total / floor;
  state.SetLabel("time is CPU a rank");
}

void barrier(benchmark::State& state) {
  with_floor(state, [] { return [](c10d::ProcessGroup& group) { group.barrier()->wait(); }; });
}

void small_allreduce(benchmark::State& state) {
  with_floor(state, [] {
    return [tensors = std::vector<at::Tensor>{at::ones({1})}](c10d::ProcessGroup& group) mutable {
      group.allreduce(tensors)->wait();
    };
  });
}

void allreduce(benchmark::State& state) {
  constexpr int kRounds = 4;
  const int ranks = static_cast<int>(state.range(0));
  const auto bytes = state.range(1);
  for (auto _ : state) {
    const double seconds = timed(ranks, kRounds, [bytes](RankContext& ctx) {
      std::vector<at::Tensor> tensors{at::ones({bytes / 4})};
      return [&ctx, tensors]() mutable { ctx.group()->allreduce(tensors)->wait(); };
    });
    state.SetIterationTime(seconds / kRounds / ranks);
  }
  state.SetLabel("time is CPU a rank");
  state.SetBytesProcessed(state.iterations() * bytes);
}

// A plain loop over the same traffic: it adds every input into a running sum and copies the sum to every output. It
// uses whole blocks, because g++ 12 vectorises a loop at -O2 only if it knows the length.
void traffic_bound(benchmark::State& state) {
  const auto ranks = static_cast<std::size_t>(state.range(0));
  const auto count = state.range(1) / 4;
  std::vector<std::vector<float>> data(ranks, std::vector<float>(static_cast<std::size_t>(count), 1.0f));
  for (auto _ : state) {
    const double start = cpu_seconds();
    constexpr std::int64_t kBlock = 4096;
    float sum[kBlock];
    for (std::int64_t at = 0; at + kBlock <= count; at += kBlock) {
      std::copy_n(data[0].data() + at, kBlock, sum);
      for (std::size_t rank = 1; rank < ranks; ++rank) {
        const float* const input = data[rank].data() + at;
        for (std::int64_t i = 0; i < kBlock; ++i) sum[i] += input[i];
      }
      for (auto& output : data) std::copy_n(sum, kBlock, output.data() + at);
      benchmark::ClobberMemory();
    }
    state.SetIterationTime((cpu_seconds() - start) / static_cast<double>(ranks));
  }
  state.SetBytesProcessed(state.iterations() * state.range(1));
}

void start_up(benchmark::State& state) {
  const int ranks = static_cast<int>(state.range(0));
  for (auto _ : state) {
    const double start = cpu_seconds();
    World world(options_for(ranks));
    world.run([](RankContext& ctx) { ctx.group()->barrier()->wait(); });
    state.SetIterationTime(cpu_seconds() - start);
  }
}

void large(benchmark::internal::Benchmark* bench) {
  for (const int ranks : {8, 64}) {
    for (const int megabytes : {1, 16}) bench->Args({ranks, megabytes << 20});
  }
  bench->UseManualTime()->Iterations(5)->Unit(benchmark::kMicrosecond);
}

BENCHMARK(barrier)->Arg(2)->Arg(8)->Arg(64)->Arg(1024)->UseManualTime()->Iterations(10);
BENCHMARK(small_allreduce)->Name("allreduce/4_bytes")->Arg(8)->Arg(64)->Arg(1024)->UseManualTime()->Iterations(10);
BENCHMARK(traffic_bound)->Name("allreduce/traffic_bound")->Apply(large);
BENCHMARK(allreduce)->Name("allreduce/large")->Apply(large);
BENCHMARK(start_up)->Arg(8)->Arg(1024)->UseManualTime()->Iterations(5)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rehearse::bench
