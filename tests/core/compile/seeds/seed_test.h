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

// A test of a row in docs/SEEDS.md. It takes the bucket size and the sizes of worlds from the row, and compares the
// pieces and compilations with the row. It fails if its row is missing, or if it leaves a number of its row unused.
class SeedTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  double cap_mb();
  const std::vector<int>& ranks();

  // Runs `body` in a world of each size that the row lists, under the schedule of each seed. Each world must end with
  // the verdict OK and without remarks.
  void on_ranks(const World::Body& body) { on_ranks({1}, body); }
  void on_ranks(const std::vector<std::uint64_t>& seeds, const World::Body& body);

  // Compares the row with all calls of one compiled function on `rank`.
  void expect_listed(const CompileStats& stats, const Counts& compiles_of_calls, int rank = 0);

 private:
  SeedRun run_;
  bool took_cap_ = false;
  bool took_ranks_ = false;
  bool compared_ = false;
};

// The names of PyTorch's test classes. A suffix of the name distinguishes several tests of one row.
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
