// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>

#include <gtest/gtest.h>

#include <rehearse/rehearse.h>

namespace rehearse::real {

// The number of this machine's GPUs; 0 if LibTorch's CUDA libraries or a driver are missing.
int gpus();

// Tests on real GPUs.
class GpuWorld : public ::testing::Test {
 public:
  // Skips the calling test if there are too few GPUs. Call it first.
  static void require(int needed);

  static WorldOptions on_gpus(int ranks) { return {.ranks = ranks, .mode = Mode::real, .transport = Transport::nccl}; }

 protected:
  void SetUp() override { require(1); }
};

// Keeps the rank's current stream busy for at least this time, with a kernel that spins.
void keep_busy(std::chrono::milliseconds duration);

}  // namespace rehearse::real
