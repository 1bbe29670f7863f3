// SPDX-License-Identifier: BSD-3-Clause
// The bucket splitter alone on BERT base (masked language model, exported): it assigns buckets and cuts the graph.
#include <string>

#include <benchmark/benchmark.h>

#include <rehearse/graph/exported_program.h>
#include <rehearse/parallel/bucket_splitter.h>

#include "core/graph/recorded_graph.h"

namespace rehearse::bench {
namespace {

const std::shared_ptr<graph::GraphModule>& bert_base() {
  static const auto module =
      graph::parse_exported_program(graph::read_gzip(REHEARSE_TEST_DATA "/truth/bert_base_mlm_model.json.gz")).module;
  return module;
}

void assign(benchmark::State& state) {
  std::size_t buckets = 0;
  for (auto _ : state) buckets = parallel::assign_buckets(*bert_base()).size();
  state.counters["nodes"] = static_cast<double>(bert_base()->graph().size());
  state.counters["buckets"] = static_cast<double>(buckets);
}
BENCHMARK(assign)->Name("bert_base/assign_buckets")->Unit(benchmark::kMillisecond);

void split(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(parallel::split_by_buckets(bert_base()));
}
BENCHMARK(split)->Name("bert_base/split_by_buckets")->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rehearse::bench
