// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace rehearse_test {

struct TransformerSize {
  int depth;
  std::int64_t width, heads, batch, time;
};

// Bytes in a step of AdamW on a sharded transformer with each block as a unit.
struct StepMemory {
  double peak = 0;     // the highest peak of any rank's tensors
  double formula = 0;  // by the formula in docs/FSDP.md
};

// Runs two steps on `ranks` ranks, and measures the memory that `[world] memory` counts. The second step has all of the
// optimizer's state.
StepMemory measure_step(const TransformerSize& size, int ranks);

}  // namespace rehearse_test
