// SPDX-License-Identifier: BSD-3-Clause
// FakeFabric alone, without ranks: CPU time of launched transfers (an iteration makes many transfers if they are
// small). `GB/s` counts each rank's tensor once. `of_bound` is the time divided by that of a loop that only copies the
// same memory in the same order.
#include <cstring>
#include <vector>

#include <ATen/ops/ones.h>
#include <benchmark/benchmark.h>

#include <rehearse_internal/fakes/fake_fabric.h>

#include "bench/cpu_time.h"

namespace rehearse::bench {
namespace {

using c10d::OpType;

struct FixedClock final : exec::Clock {
  VirtualTime now() const noexcept override { return kTimeZero; }
  void advance_to(VirtualTime) noexcept override {}
};

struct NoCompletion final : comm::Completion {
  void on_launched() noexcept override {}
  void on_done() noexcept override {}
  void on_failed(std::exception_ptr) noexcept override {}
};

struct OneStep final : fakes::CostModel {
  VirtualDuration duration(const comm::Transfer&) const override { return VirtualDuration(1); }
};

struct Group {
  Group(OpType type, int ranks, std::int64_t count, c10::ScalarType dtype) : calls(ranks) {
    for (auto& call : calls) {
      call.type = type;
      call.reduce_op = c10d::ReduceOp::SUM;
      call.inputs = call.outputs = {at::ones({count}, dtype).fill_(0)};
      pointers.push_back(&call);
    }
    transfer.type = type;
    transfer.calls = pointers;
  }

  std::vector<comm::Operation> calls;
  std::vector<comm::Operation*> pointers;
  comm::Transfer transfer;
};

// Copies a block of every tensor into one place in the first-level cache, then from there back to each tensor. An
// in-place all-reduce has the same traffic, plus its additions.
void traffic(const Group& group, std::int64_t bytes) {
  alignas(64) static std::byte block[16 << 10];
  const auto ranks = static_cast<std::int64_t>(group.calls.size());
  const std::int64_t step = std::min<std::int64_t>(sizeof(block), std::max<std::int64_t>(2 << 10, (512 << 10) / ranks));
  for (std::int64_t first = 0; first < bytes; first += step) {
    const auto length = static_cast<std::size_t>(std::min(step, bytes - first));
    for (const auto& call : group.calls) {
      std::memcpy(block, static_cast<const std::byte*>(call.inputs[0].const_data_ptr()) + first, length);
      benchmark::DoNotOptimize(block);
    }
    for (const auto& call : group.calls) {
      std::memcpy(static_cast<std::byte*>(call.inputs[0].mutable_data_ptr()) + first, block, length);
    }
  }
}

template <class Work>
double seconds_of(const Work& work) {
  const double start = cpu_seconds();
  work();
  return cpu_seconds() - start;
}

void all_reduce(benchmark::State& state, c10::ScalarType dtype) {
  const int ranks = static_cast<int>(state.range(0));
  const std::int64_t bytes = state.range(1);
  Group group(OpType::ALLREDUCE, ranks, bytes / static_cast<std::int64_t>(c10::elementSize(dtype)), dtype);
  exec::TimerQueue timers;
  FixedClock clock;
  fakes::ZeroCost costs;
  NoCompletion done;
  fakes::FakeFabric fabric(timers, clock, costs);
  // Repeats short work many times between two readings of the clock. Work and bound take turns, so that both see the
  // same noise.
  const int repeats = static_cast<int>(std::max<std::int64_t>(1, (1 << 20) / (bytes * ranks)));
  double total = 0, best = 1e9, bound = 1e9;
  for (auto _ : state) {
    const double seconds = seconds_of([&] {
                             for (int i = 0; i < repeats; ++i) fabric.launch(group.transfer, done);
                           }) /
                           repeats;
    bound = std::min(bound, seconds_of([&] {
                              for (int i = 0; i < repeats; ++i) traffic(group, bytes);
                            }) / repeats);
    best = std::min(best, seconds);
    total += seconds;
    state.SetIterationTime(seconds * repeats);
  }
  const double volume = static_cast<double>(bytes) * ranks;
  state.counters["GB/s"] = volume / (total / static_cast<double>(state.iterations())) / 1e9;
  state.counters["best_GB/s"] = volume / best / 1e9;
  state.counters["best_ns_a_rank"] = best / ranks * 1e9;
  if (bytes >= 4096) state.counters["of_bound"] = best / bound;
}

void with_timer(benchmark::State& state) {
  Group group(OpType::BARRIER, 2, 1, c10::kFloat);
  exec::TimerQueue timers;
  FixedClock clock;
  OneStep costs;
  NoCompletion done;
  fakes::FakeFabric fabric(timers, clock, costs);
  for (auto _ : state) {
    fabric.launch(group.transfer, done);
    timers.fire_due(VirtualTime(VirtualDuration(1)));
  }
}

void sizes(benchmark::internal::Benchmark* bench) {
  bench->UseManualTime()->ArgNames({"ranks", "bytes"});
  for (const int ranks : {2, 8, 64}) {
    for (const std::int64_t bytes : {4, 4 << 10, 1 << 20, 16 << 20}) bench->Args({ranks, bytes});
  }
  bench->Args({1024, 4})->Args({1024, 4 << 10})->Args({1024, 1 << 20});
}

BENCHMARK_CAPTURE(all_reduce, float32, c10::kFloat)->Apply(sizes);
BENCHMARK_CAPTURE(all_reduce, bfloat16, c10::kBFloat16)->UseManualTime()->Args({8, 1 << 20})->Args({64, 1 << 20});
BENCHMARK_CAPTURE(all_reduce, float16, c10::kHalf)->UseManualTime()->Args({8, 1 << 20})->Args({64, 1 << 20});
BENCHMARK_CAPTURE(all_reduce, int64, c10::kLong)->UseManualTime()->Args({8, 1 << 20})->Args({64, 1 << 20});
BENCHMARK(with_timer);

}  // namespace
}  // namespace rehearse::bench
