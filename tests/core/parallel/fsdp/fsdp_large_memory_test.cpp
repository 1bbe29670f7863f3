// SPDX-License-Identifier: BSD-3-Clause
// The test of fsdp_memory_test.cpp with a transformer of realistic size. It takes minutes.
#include <gtest/gtest.h>

#include "core/parallel/fsdp/memory_formula.h"

namespace {

TEST(FsdpMemory, TransformerOfWidth512_TakesWhatTheFormulaSays) {
  const auto step = rehearse_test::measure_step({.depth = 12, .width = 512, .heads = 8, .batch = 8, .time = 128}, 8);
  EXPECT_LE(step.peak, 1.15 * step.formula);
  EXPECT_GE(step.peak, 0.7 * step.formula);
}

}  // namespace
