// SPDX-License-Identifier: BSD-3-Clause
// Resident memory per rank. A fresh process first runs a world of two ranks, which loads libraries, caches and pages of
// code. Then it runs a world of n ranks. The result is the growth from the end of the first world until all n ranks
// live, before their last barrier, divided by n. `peak_KB` is computed in the same way from the highest value of the
// whole run.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>

#include <ATen/Functions.h>
#include <benchmark/benchmark.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <rehearse/parallel/distributed_data_parallel.h>
#include <rehearse/sim/world.h>

#include "bench/fresh_process.h"

namespace rehearse::bench {
namespace {

constexpr std::string_view kMeasured = "--measured";
constexpr int kWarmRanks = 2;
constexpr int kSteps = 3;

// Reads a line of /proc/self/status, such as "VmRSS", in KB.
double of_this_process(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name + ":")) return std::stod(line.substr(name.size() + 1));
  }
  throw std::runtime_error("/proc/self/status has no " + name);
}

// Linear, ReLU, Linear, ReLU, Linear: 885 parameters (3.5 KB of float32) for a width of 16, 6,597 (26 KB) for 64.
// Memory holds them three times: as parameters, gradients and buckets. With bucket views, it holds them twice.
template <int kWidth>
torch::nn::Sequential five_layers() {
  using namespace torch::nn;
  return Sequential(Linear(32, kWidth), ReLU(), Linear(kWidth, kWidth), ReLU(), Linear(kWidth, 5));
}

// Five linear layers, 20,800 parameters: 81 KB.
torch::nn::Sequential five_linear_layers() {
  torch::nn::Sequential net;
  for (int layer = 0; layer < 5; ++layer) net->push_back(torch::nn::Linear(64, 64));
  return net;
}

struct Job {
  torch::nn::Sequential (*net)();  // null: the ranks train nothing
  std::int64_t inputs;
  bool bucket_views;
};

const std::map<std::string, Job, std::less<>>& jobs() {
  static const std::map<std::string, Job, std::less<>> all{
      {"plain", {nullptr, 0, false}},
      {"ddp_width_16", {five_layers<16>, 32, false}},
      {"ddp_width_16_bucket_views", {five_layers<16>, 32, true}},
      {"ddp_width_64", {five_layers<64>, 32, false}},
      {"ddp_width_64_bucket_views", {five_layers<64>, 32, true}},
      {"ddp_width_64_linear", {five_linear_layers, 64, false}},
  };
  return all;
}

// Trains this rank, and calls `at_end` while everything that training needs is still alive.
template <class AtEnd>
void train(RankContext& ctx, const Job& job, AtEnd at_end) {
  DistributedDataParallelOptions options;
  options.gradient_as_bucket_view = job.bucket_views;
  DistributedDataParallel ddp(job.net(), ctx.group(), options);
  torch::optim::SGD optimizer(ddp.parameters(), 0.01);
  for (int step = 0; step < kSteps; ++step) {
    ddp.zero_grad(/*set_to_none=*/!job.bucket_views);
    at::mean(at::pow(ddp.forward(at::randn({8, job.inputs})), 2)).backward();
    optimizer.step();
  }
  at_end();
}

double resident_kb_of_world(int ranks, const Job& job) {
  double resident = 0;
  int there = 0;
  World world({.ranks = ranks, .explain_failures = false});
  const Report report = world.run([&](RankContext& ctx) {
    const auto at_end = [&] {
      ctx.group()->barrier()->wait();
      if (++there == ranks) resident = of_this_process("VmRSS");
      ctx.group()->barrier()->wait();
    };
    job.net == nullptr ? at_end() : train(ctx, job, at_end);
  });
  if (report.verdict != Verdict::ok) throw std::runtime_error(report.headline);
  return resident;
}

int measured_main(const Job& job, int ranks) {
  resident_kb_of_world(kWarmRanks, job);
  const double before = of_this_process("VmRSS");
  const double resident = resident_kb_of_world(ranks, job);
  std::printf("%f %f\n", (resident - before) / ranks, (of_this_process("VmHWM") - before) / ranks);
  return 0;
}

void memory(benchmark::State& state, const std::string& job) {
  for (auto _ : state) {
    const auto numbers = numbers_of_fresh_process({std::string(kMeasured), job, std::to_string(state.range(0))});
    state.counters["KB_a_rank"] = numbers.at(0);
    state.counters["peak_KB"] = numbers.at(1);
  }
}

void register_all() {
  for (const auto& [name, job] : jobs()) {
    auto* const bench = benchmark::RegisterBenchmark(("memory/" + name).c_str(), memory, name);
    bench->ArgName("ranks")->Arg(1024)->Iterations(1)->Unit(benchmark::kMillisecond);
    if (job.net == nullptr) bench->Arg(10'000);
  }
}

}  // namespace
}  // namespace rehearse::bench

int main(int argc, char** argv) {
  using namespace rehearse::bench;
  if (argc == 4 && argv[1] == kMeasured) return measured_main(jobs().at(argv[2]), std::atoi(argv[3]));
  register_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
