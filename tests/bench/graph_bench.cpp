// SPDX-License-Identifier: BSD-3-Clause
// Time to build, copy, split, hash, print and parse a graph of 10,000 nodes.
#include <benchmark/benchmark.h>

#include <rehearse/graph/split.h>
#include <rehearse/graph/text.h>
#include <rehearse_internal/graph/structural_hash.h>

namespace rehearse::graph {
namespace {

constexpr int kNodes = 10000;

// A chain of layers. Each takes the previous value, a parameter of its own, and a mask that all layers use.
void build(GraphModule& module, int nodes) {
  Graph& graph = module.graph();
  const TensorMeta tensor{.sizes = {SymExpr{"s0"}, 64}, .strides = {64, 1}};
  Node& rows = graph.placeholder("s0");
  rows.meta().set_value(SymScalarMeta{SymScalarMeta::Kind::Int, {"s0"}});
  Node* value = &graph.placeholder("x");
  value->meta().set_value(tensor);
  Node& mask = graph.placeholder("mask");
  mask.meta().set_value(tensor);
  for (int i = 0; i + 4 < nodes; i += 2) {
    Node& weight = graph.placeholder("weight");
    weight.meta().set_value(TensorMeta{.sizes = {64, 64}, .strides = {64, 1}});
    value = &graph.call_function("torch.ops.aten.addmm.default", {mask, *value, weight});
    value->meta().set_value(tensor);
  }
  graph.output(List{*value});
}

void graph_build(benchmark::State& state) {
  for (auto _ : state) {
    GraphModule module;
    build(module, kNodes);
    benchmark::DoNotOptimize(module.graph().size());
  }
}
BENCHMARK(graph_build)->Unit(benchmark::kMillisecond);

void graph_copy(benchmark::State& state) {
  GraphModule module;
  build(module, kNodes);
  for (auto _ : state) benchmark::DoNotOptimize(copy_graph_module(module));
}
BENCHMARK(graph_copy)->Unit(benchmark::kMillisecond);

void graph_split(benchmark::State& state) {
  GraphModule module;
  build(module, kNodes);
  const int per_part = kNodes / 2 / static_cast<int>(state.range(0));
  for (auto _ : state) {
    int seen = 0;
    benchmark::DoNotOptimize(split_by(module, [&](const Node&) { return seen++ / per_part; }));
  }
}
BENCHMARK(graph_split)->Arg(2)->Arg(20)->Arg(1000)->Unit(benchmark::kMillisecond);

void graph_hash(benchmark::State& state) {
  GraphModule module;
  build(module, kNodes);
  for (auto _ : state) benchmark::DoNotOptimize(structural_hash(module));
}
BENCHMARK(graph_hash)->Unit(benchmark::kMillisecond);

void graph_text_and_back(benchmark::State& state) {
  GraphModule module;
  build(module, kNodes);
  for (auto _ : state) benchmark::DoNotOptimize(parse_graph_module(to_text(module)));
}
BENCHMARK(graph_text_and_back)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rehearse::graph
