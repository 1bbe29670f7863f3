// SPDX-License-Identifier: BSD-3-Clause
// CPU time of DistributedDataParallel, per rank: a training step (an MLP 1024-1024-1024-10, batch 8, SGD), compared
// with a reference in the same run. `ratio` is the least time of the step, divided by the least time of the reference.
//   ddp_step/views    gradient_as_bucket_view; the reference trains the same models one after the other and averages
//                     their gradients in place
//   ddp_step/default  default options; the reference is LibTorch's reducer alone, on a back end that averages in place
//                     without checks
#include <algorithm>
#include <limits>
#include <memory>
#include <stdexcept>
#include <unordered_map>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/sin.h>
#include <benchmark/benchmark.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include <rehearse/parallel/distributed_data_parallel.h>
#include <rehearse/sim/world.h>

#include "bench/cpu_time.h"
#include "bench/unchecked_backend.h"

namespace rehearse::bench {
namespace {

constexpr int kWarmSteps = 3;
constexpr int kSteps = 6;
constexpr int kRepetitions = 3;
constexpr double kLearningRate = 0.01;

torch::nn::Sequential mlp() {
  using namespace torch::nn;
  return Sequential(Linear(1024, 1024), ReLU(), Linear(1024, 1024), ReLU(), Linear(1024, 10));
}

at::Tensor batch() { return at::sin(at::arange(8 * 1024, at::kFloat)).view({8, 1024}); }

at::Tensor loss_of(const at::Tensor& output) { return at::mean(at::pow(output, 2)); }

void clear(const std::vector<at::Tensor>& parameters, bool set_to_none) {
  const at::NoGradGuard no_grad;
  for (const auto& parameter : parameters) {
    if (!parameter.grad().defined()) continue;
    set_to_none ? void(parameter.mutable_grad() = at::Tensor()) : void(parameter.mutable_grad().zero_());
  }
}

// In each step, runs one model after the other, then averages each gradient in place. Returns CPU seconds per rank and
// step.
double one_after_the_other(int ranks, bool set_to_none) {
  at::set_num_threads(1);  // as in a world
  struct Replica {
    torch::nn::Sequential net = mlp();
    std::vector<at::Tensor> parameters = net->parameters();
    torch::optim::SGD optimizer{parameters, kLearningRate};
  };
  std::vector<std::unique_ptr<Replica>> replicas;
  for (int rank = 0; rank < ranks; ++rank) replicas.push_back(std::make_unique<Replica>());
  const auto x = batch();
  double start = 0;
  for (int step = 0; step < kWarmSteps + kSteps; ++step) {
    if (step == kWarmSteps) start = cpu_seconds();
    for (auto& replica : replicas) {
      clear(replica->parameters, set_to_none);
      loss_of(replica->net->forward(x)).backward();
    }
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < replicas[0]->parameters.size(); ++i) {
      auto& mean = replicas[0]->parameters[i].mutable_grad();
      for (int rank = 1; rank < ranks; ++rank) mean.add_(replicas[rank]->parameters[i].grad());
      mean.div_(ranks);
      for (int rank = 1; rank < ranks; ++rank) replicas[rank]->parameters[i].mutable_grad().copy_(mean);
    }
    for (auto& replica : replicas) replica->optimizer.step();
  }
  return (cpu_seconds() - start) / kSteps / ranks;
}

// Each rank repeats the step that `make_step(ctx)` returns. Returns CPU seconds per rank and step.
template <class MakeStep>
double on_fibers(int ranks, MakeStep make_step) {
  double start = 0, end = 0;
  int done = 0;
  World world({.ranks = ranks, .explain_failures = false});
  const Report report = world.run([&](RankContext& ctx) {
    auto step = make_step(ctx);
    for (int i = 0; i < kWarmSteps; ++i) step();
    ctx.group()->barrier()->wait();
    if (start == 0) start = cpu_seconds();
    for (int i = 0; i < kSteps; ++i) step();
    if (++done == ranks) end = cpu_seconds();
  });
  if (report.verdict != Verdict::ok) throw std::runtime_error(report.headline);
  return (end - start) / kSteps / ranks;
}

double with_ddp(int ranks, const DistributedDataParallelOptions& options) {
  return on_fibers(ranks, [&](RankContext& ctx) {
    struct Training {
      torch::nn::Sequential net = mlp();
      DistributedDataParallel<torch::nn::Sequential> ddp;
      torch::optim::SGD optimizer{ddp.parameters(), kLearningRate};
      Training(RankContext& ctx, const DistributedDataParallelOptions& options) : ddp(net, ctx.group(), options) {}
    };
    auto training = std::make_shared<Training>(ctx, options);
    return [training, x = batch(), set_to_none = !options.gradient_as_bucket_view] {
      training->ddp.zero_grad(set_to_none);
      loss_of(training->ddp.forward(x)).backward();
      training->optimizer.step();
    };
  });
}

std::shared_ptr<c10d::Reducer> bare_reducer(const std::vector<at::Tensor>& parameters,
                                            const c10::intrusive_ptr<c10d::ProcessGroup>& group) {
  auto buckets =
      std::get<0>(c10d::compute_bucket_assignment_by_size(parameters, {std::numeric_limits<std::size_t>::max()}));
  std::reverse(buckets.begin(), buckets.end());
  std::unordered_map<std::size_t, std::string> names;
  for (std::size_t i = 0; i < parameters.size(); ++i) names[i] = std::to_string(i);
  return std::make_shared<c10d::Reducer>(parameters, buckets, group, std::vector<bool>(parameters.size(), false),
                                         c10d::kDefaultBucketBytesCap, false, false, names,
                                         c10d::kDefaultFirstBucketBytes, false, false, std::vector<std::int64_t>{});
}

double with_bare_reducer(int ranks) {
  const auto world = std::make_shared<UncheckedBackend::World>(UncheckedBackend::World{ranks});
  return on_fibers(ranks, [&](RankContext& ctx) {
    auto net = mlp();
    const auto parameters = net->parameters();
    auto reducer = bare_reducer(parameters, unchecked_group(ctx.rank(), world));
    auto optimizer = std::make_shared<torch::optim::SGD>(parameters, kLearningRate);
    return [=, x = batch()]() mutable {
      clear(parameters, true);
      reducer->prepare_for_forward();
      reducer->rebuild_buckets();
      auto loss = loss_of(net->forward(x));
      reducer->prepare_for_backward({});
      loss.backward();
      optimizer->step();
    };
  });
}

// Runs `ours` and `reference` in turns, so that other load on the machine affects both in the same way.
template <class Ours, class Reference>
void compare(benchmark::State& state, Ours ours, Reference reference) {
  const int ranks = static_cast<int>(state.range(0));
  double least = std::numeric_limits<double>::max(), least_reference = least;
  for (auto _ : state) {
    least_reference = std::min(least_reference, reference(ranks));
    const double seconds = ours(ranks);
    least = std::min(least, seconds);
    state.SetIterationTime(seconds);
  }
  state.counters["ms"] = least * 1e3;
  state.counters["reference_ms"] = least_reference * 1e3;
  state.counters["ratio"] = least / least_reference;
}

void views(benchmark::State& state) {
  compare(
      state, [](int ranks) { return with_ddp(ranks, {.gradient_as_bucket_view = true}); },
      [](int ranks) { return one_after_the_other(ranks, /*set_to_none=*/false); });
}

void defaults(benchmark::State& state) {
  compare(state, [](int ranks) { return with_ddp(ranks, {}); }, with_bare_reducer);
}

void few_times(benchmark::internal::Benchmark* bench) {
  bench->ArgName("ranks")->Arg(8)->Arg(32)->UseManualTime()->Iterations(kRepetitions)->Unit(benchmark::kMillisecond);
}

BENCHMARK(views)->Name("ddp_step/views")->Apply(few_times);
BENCHMARK(defaults)->Name("ddp_step/default")->Apply(few_times);

}  // namespace
}  // namespace rehearse::bench
