// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>

#include <gtest/gtest.h>

#include <rehearse/rehearse.h>

namespace rehearse::real {

// The number of this machine's GPUs; 0 if LibTorch's CUDA libraries or a driver are missing.
int gpus();

// Skips the calling test if there are too few GPUs. Use it first, in SetUp() or in the test itself. A macro, because a
// skip only returns from the function in which it stands.
#define REHEARSE_REQUIRE_GPUS(needed)      \
  if (::rehearse::real::gpus() < (needed)) \
  GTEST_SKIP() << "needs " << (needed) << " GPUs, and there are " << ::rehearse::real::gpus()

// Tests on real GPUs.
class GpuWorld : public ::testing::Test {
 public:
  static WorldOptions on_gpus(int ranks) { return {.ranks = ranks, .mode = Mode::real, .transport = Transport::nccl}; }

 protected:
  void SetUp() override { REHEARSE_REQUIRE_GPUS(1); }
};

// Keeps the rank's current stream busy for at least this time, with a kernel that spins.
void keep_busy(std::chrono::milliseconds duration);

}  // namespace rehearse::real
