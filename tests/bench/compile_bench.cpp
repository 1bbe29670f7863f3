// SPDX-License-Identifier: BSD-3-Clause
// A call that a compiled function's cache serves: guards are checked, and a graph that computes nothing is run. And the
// first call, which captures.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <benchmark/benchmark.h>

#include <rehearse/compile/compile.h>

#include "models/toy.h"

namespace rehearse::bench {
namespace {

// Its graphs give the same tensor in each call.
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

CompileOptions cached_options(std::optional<bool> dynamic) {
  return {.backend = std::make_shared<Cached>(at::zeros({20, 5})),
          .dynamic = dynamic,
          .fullgraph = true,
          .verify = Verify::Never};
}

// `state.range(0)`: is the batch a symbol?
void dispatch(benchmark::State& state) {
  test::Toy toy(test::ToyShape{10, 64, 5});
  auto compiled = compile(toy, cached_options(state.range(0) != 0));
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
    auto compiled = compile(toy, cached_options(state.range(0) != 0));
    benchmark::DoNotOptimize(compiled(x));
  }
}
BENCHMARK(first_call)->Name("first_call/toy")->Arg(0)->Arg(1)->ArgName("symbols")->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rehearse::bench
