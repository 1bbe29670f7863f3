// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace rehearse_test {

struct TransformerSize {
  int depth;
  std::int64_t width, heads, batch, time;
};

// Bytes of a step of AdamW on a sharded transformer, each block a unit.
struct StepMemory {
  double peak = 0;     // the most that a rank's tensors take
  double formula = 0;  // that of docs/FSDP.md
};

// Makes the step on so many ranks, and measures what `[world] memory` counts.
StepMemory measure_step(const TransformerSize& size, int ranks);

}  // namespace rehearse_test
