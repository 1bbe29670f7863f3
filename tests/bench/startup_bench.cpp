// SPDX-License-Identifier: BSD-3-Clause
// Startup time of a program with ranks: CPU time of a fresh process from main() until all ranks have passed their first
// barrier. `load_ms` is the CPU time before main(): the dynamic linker and LibTorch's static initialisers.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string_view>

#include <benchmark/benchmark.h>

#include <rehearse/sim/world.h>

#include "bench/fresh_process.h"

namespace rehearse::bench {
namespace {

constexpr std::string_view kMeasured = "--measured";

// CPU time of all threads since the process began, in milliseconds.
double cpu_ms_of_process() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

int measured_main(int ranks, double at_main) {
  int past = 0;
  double at_last = 0;
  World world({.ranks = ranks});
  const Report report = world.run([&](RankContext& ctx) {
    ctx.group()->barrier()->wait();
    if (++past == ranks) at_last = cpu_ms_of_process();
  });
  std::printf("%f %f\n", at_main, at_last - at_main);
  return report.verdict == Verdict::ok ? 0 : 1;
}

void start_up(benchmark::State& state) {
  double load = 0;
  for (auto _ : state) {
    const auto numbers = numbers_of_fresh_process({std::string(kMeasured), std::to_string(state.range(0))});
    load += numbers.at(0);
    state.SetIterationTime(numbers.at(1) * 1e-3);
  }
  state.counters["load_ms"] = load / static_cast<double>(state.iterations());
}

BENCHMARK(start_up)->ArgName("ranks")->Arg(8)->Arg(1024)->UseManualTime()->Iterations(5)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rehearse::bench

int main(int argc, char** argv) {
  const double at_main = rehearse::bench::cpu_ms_of_process();
  if (argc == 3 && argv[1] == rehearse::bench::kMeasured) {
    return rehearse::bench::measured_main(std::atoi(argv[2]), at_main);
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
