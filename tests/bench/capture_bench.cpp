// SPDX-License-Identifier: BSD-3-Clause
// Time to capture models as graphs. A capture computes nothing.
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <benchmark/benchmark.h>

#include <rehearse/capture/forward_capture.h>
#include <rehearse_internal/shapes/shape_env.h>

#include "models/bert.h"
#include "models/toy.h"
#include "models/transformer.h"

namespace rehearse::bench {
namespace {

std::vector<capture::NamedTensor> tensors_of(const torch::nn::Module& module) {
  std::vector<capture::NamedTensor> tensors;
  for (const auto& item : module.named_parameters()) tensors.push_back({item.key(), item.value(), true, false});
  for (const auto& item : module.named_buffers()) tensors.push_back({item.key(), item.value(), false, false});
  return tensors;
}

// The first `dynamic` dimensions of `x` may vary.
template <class Net>
capture::CapturedGraph capture_of(Net& net, const std::vector<capture::NamedTensor>& tensors, const at::Tensor& x,
                                  std::int64_t dynamic) {
  const auto shapes = shapes::ShapeEnv::make();
  capture::ForwardCapture capture(shapes, tensors);
  std::vector<c10::SymInt> sizes(x.sizes().begin(), x.sizes().end());
  for (std::int64_t dim = 0; dim < dynamic; ++dim) {
    sizes[static_cast<std::size_t>(dim)] = shapes->add_backed(x.size(dim), "x.size(" + std::to_string(dim) + ")");
  }
  const auto fake = capture.add_tensor("x", x, std::move(sizes));
  at::Tensor y;
  capture.run([&] { y = net(fake); });
  return capture.finish({std::move(y)});
}

template <class Net>
void capture_model(benchmark::State& state, Net net, const at::Tensor& x, std::int64_t dynamic) {
  const auto tensors = tensors_of(*net);
  std::size_t nodes = 0;
  std::size_t guards = 0;
  for (auto _ : state) {
    const auto captured = capture_of(net, tensors, x, dynamic);
    nodes = captured.module->graph().size();
    guards = captured.shapes->guards().size();
  }
  state.counters["nodes"] = static_cast<double>(nodes);
  state.counters["guards"] = static_cast<double>(guards);
}

void mlp(benchmark::State& state) {
  capture_model(state, test::Toy(test::ToyShape{10, 64, 5}), at::ones({20, 10}), state.range(0));
}
BENCHMARK(mlp)->Name("capture/mlp")->Arg(0)->Arg(1)->ArgName("symbols")->Unit(benchmark::kMillisecond);

void transformer(benchmark::State& state) {
  const test::TransformerShape shape{.layers = 12, .width = 768, .heads = 12, .vocabulary = 1000, .length = 512};
  capture_model(state, test::Transformer(shape), at::ones({4, 32}, at::kLong), state.range(0));
}
BENCHMARK(transformer)
    ->Name("capture/transformer_12")
    ->Arg(0)
    ->Arg(2)
    ->ArgName("symbols")
    ->Unit(benchmark::kMillisecond);

void bert_base(benchmark::State& state) {
  capture_model(state, test::BertForMaskedLM(), at::ones({4, 32}, at::kLong), state.range(0));
}
BENCHMARK(bert_base)->Name("capture/bert_base")->Arg(0)->Arg(2)->ArgName("symbols")->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rehearse::bench
