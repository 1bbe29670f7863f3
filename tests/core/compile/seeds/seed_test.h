// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <rehearse/compile/explanation.h>
#include <rehearse/sim/world.h>

#include "core/compile/seeds/seed_run.h"

namespace rehearse::compiler {

// A test of a row of docs/SEEDS.md. It takes the cap and the sizes of worlds from the row, and holds the pieces and
// compilations to it. A test whose row is missing, or that does not use a number of its row, fails.
class SeedTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  double cap_mb();
  const std::vector<int>& ranks();

  // Runs `body` in a world of each size that the row lists, under the schedule of each seed. The worlds must end in OK.
  void on_ranks(const World::Body& body) { on_ranks({1}, body); }
  void on_ranks(const std::vector<std::uint64_t>& seeds, const World::Body& body);

  // Compares what the row lists with what one compiled function did in all of its calls on `rank`.
  void expect_listed(const CompileStats& stats, const Counts& compiles_of_calls, int rank = 0);

 private:
  SeedRun run_;
  bool took_cap_ = false;
  bool took_ranks_ = false;
  bool compared_ = false;
};

// PyTorch's classes. A word behind the name tells tests of one row apart.
using TestFakeDistributedSingleProc = SeedTest;
using TestFakeDistributedSingleProcUncut = SeedTest;
using TestFakeDistributedSingleProcAtBaseSize = SeedTest;
using TestMultiProc = SeedTest;
using TestMultiProcAtBaseSize = SeedTest;
using TestMultiProcAtSeedSize = SeedTest;
using TestMultiProcWithUnits = SeedTest;
using TestSingleProc = SeedTest;
using TestSingleProcUnderFakeDdp = SeedTest;
using TestSingleProcAtSeedSize = SeedTest;
using DistributedPatternTests = SeedTest;

}  // namespace rehearse::compiler
