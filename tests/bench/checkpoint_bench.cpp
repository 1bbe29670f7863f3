// SPDX-License-Identifier: BSD-3-Clause
// Time of a training step of a transformer, with plain layers and with layers that are checkpoints.
#include <benchmark/benchmark.h>

#include "models/checkpointed_transformer.h"

namespace rehearse::test {
namespace {

void transformer_step(benchmark::State& state, bool saves) {
  CheckpointedTransformer model(12, saves);
  model.step();
  for (auto _ : state) model.step();
}

BENCHMARK_CAPTURE(transformer_step, plain, false)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_CAPTURE(transformer_step, checkpointed, true)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace rehearse::test
