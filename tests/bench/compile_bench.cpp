// SPDX-License-Identifier: BSD-3-Clause
// Time of a call that a compiled function's cache serves: with a graph that computes nothing (`dispatch`), and with the
// captured graph (`served`). Also the time of the first call, which captures.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <benchmark/benchmark.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <rehearse/compile/compile.h>

#include "models/toy.h"

namespace rehearse::bench {
namespace {

// A back end whose graphs return the same tensor in each call.
class Cached final : public compiler::Backend {
 public:
  explicit Cached(at::Tensor result) : result_(std::move(result)) {}
  std::string name() const override { return "cached"; }
  compiler::CompiledGraph compile(const compiler::BackendInput&) override {
    return [result = result_](const std::vector<c10::IValue>&) { return std::vector<c10::IValue>{result}; };
  }

 private:
  at::Tensor result_;
};

// `result` must have the layout of the compiled function's result. Otherwise each call would copy it into that layout.
CompileOptions cached_options(std::optional<bool> dynamic, at::Tensor result) {
  return {.backend = std::make_shared<Cached>(std::move(result)),
          .dynamic = dynamic,
          .fullgraph = true,
          .verify = Verify::Never};
}

// `state.range(0)`: 1 if the batch size is a symbol.
void dispatch(benchmark::State& state) {
  test::Toy toy(test::ToyShape{10, 64, 5});
  auto compiled = compile(toy, cached_options(state.range(0) != 0, at::zeros({20, 5})));
  const auto x = at::ones({20, 10});
  compiled(x);
  for (auto _ : state) benchmark::DoNotOptimize(compiled(x));
  state.counters["parameters"] = static_cast<double>(toy->parameters().size());
  state.counters["compiles"] = static_cast<double>(compiled.stats().compiles);
}
BENCHMARK(dispatch)->Name("dispatch/toy")->Arg(0)->Arg(1)->ArgName("symbols")->Unit(benchmark::kMicrosecond);

void first_call(benchmark::State& state) {
  test::Toy toy(test::ToyShape{10, 64, 5});
  const auto x = at::ones({20, 10});
  for (auto _ : state) {
    auto compiled = compile(toy, cached_options(state.range(0) != 0, at::zeros({20, 5})));
    benchmark::DoNotOptimize(compiled(x));
  }
}
BENCHMARK(first_call)->Name("first_call/toy")->Arg(0)->Arg(1)->ArgName("symbols")->Unit(benchmark::kMillisecond);

torch::nn::Sequential layers(std::int64_t count) {
  torch::nn::Sequential net;
  for (std::int64_t i = 0; i < count; ++i) {
    net->push_back(torch::nn::Linear(4, 4));
    net->push_back(torch::nn::Tanh());
  }
  return net;
}

// `state.range(0)` layers with two parameters each.
void dispatch_of_layers(benchmark::State& state) {
  auto net = layers(state.range(0));
  auto compiled = compile(net, cached_options(false, at::zeros({8, 4})));
  const auto x = at::ones({8, 4});
  compiled(x);
  for (auto _ : state) benchmark::DoNotOptimize(compiled(x));
  state.counters["parameters"] = static_cast<double>(net->parameters().size());
}
BENCHMARK(dispatch_of_layers)->Name("dispatch/layers")->Arg(100)->Unit(benchmark::kMicrosecond);

// `state.range(0)` layers of two or three nodes each: the cost of a layer must not grow with their number.
void first_call_of_layers(benchmark::State& state) {
  torch::nn::Sequential net = layers(state.range(0));
  const auto x = at::ones({2, 4});
  for (auto _ : state) {
    auto compiled = compile(net, {.fullgraph = true, .verify = Verify::Never});
    benchmark::DoNotOptimize(compiled(x));
  }
  state.counters["s_per_layer"] = benchmark::Counter(
      static_cast<double>(state.range(0)), benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(first_call_of_layers)->Name("first_call/layers")->Arg(10)->Arg(100)->Arg(400)->Unit(benchmark::kMillisecond);

// Compares the compiled layers with the same layers in eager mode.
void served_layers(benchmark::State& state) {
  torch::nn::Sequential net = layers(state.range(0));
  auto compiled = compile(net, {.fullgraph = true, .verify = Verify::Never});
  const auto x = at::ones({2, 4});
  compiled(x);
  const bool is_compiled = state.range(1) != 0;
  for (auto _ : state) benchmark::DoNotOptimize(is_compiled ? compiled(x) : net->forward(x));
}
BENCHMARK(served_layers)
    ->Name("served/layers")
    ->ArgsProduct({{10, 400}, {0, 1}})
    ->ArgNames({"layers", "compiled"})
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace rehearse::bench
