// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>

#include <gtest/gtest.h>

#include <rehearse/rehearse.h>

namespace rehearse::real {

// How many GPUs this machine has; 0 where LibTorch's CUDA libraries or a driver are missing.
int gpus();

// Tests on real GPUs. Where there are fewer than a test needs it is skipped, and says so.
class GpuWorld : public ::testing::Test {
 protected:
  void SetUp() override { require(1); }
  // Skips the test that calls it first of all.
  static void require(int needed);

  static WorldOptions on_gpus(int ranks) { return {.ranks = ranks, .mode = Mode::real, .carrier = Carrier::nccl}; }
};

// Keeps the rank's current stream busy for so long, by a kernel that spins.
void keep_busy(std::chrono::milliseconds duration);

}  // namespace rehearse::real
