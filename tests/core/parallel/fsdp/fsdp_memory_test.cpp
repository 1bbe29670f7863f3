// SPDX-License-Identifier: BSD-3-Clause
// Contract: a rank of a sharded transformer takes about as much memory as the formula in docs/FSDP.md says.
#include <gtest/gtest.h>

#include "core/parallel/fsdp/memory_formula.h"

namespace {

using rehearse_test::measure_step;

TEST(FsdpMemory, SmallTransformer_TakesWhatTheFormulaSays) {
  const auto step = measure_step({.depth = 12, .width = 128, .heads = 4, .batch = 2, .time = 64}, 8);
  EXPECT_LE(step.peak, 1.15 * step.formula);
  EXPECT_GE(step.peak, 0.7 * step.formula);  // the formula is not much too high either
}

}  // namespace
