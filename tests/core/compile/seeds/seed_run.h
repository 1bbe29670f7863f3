// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rehearse::compiler {

// Compilations of each call, in order.
using Counts = std::vector<int>;

// What a row of docs/SEEDS.md lists for one GoogleTest: how the test runs, and what must come of it.
struct SeedRun {
  std::vector<int> ranks;        // sizes of the worlds; empty: one process under FakeDDP
  std::optional<double> cap_mb;  // of DDP's buckets; nothing without DDP
  std::int64_t pieces = 0;       // graphs of each compilation
  Counts compiles;               // of rank 0
  Counts compiles_elsewhere;     // of every other rank

  bool operator==(const SeedRun&) const = default;
};

// Finds `test` ("TestSingleProc.test_no_split") in the text of the page. The k-th test of a row has its k-th run.
// Throws std::runtime_error that names the test and says what the page must have.
SeedRun seed_run_of(const std::string& page, const std::string& test);

}  // namespace rehearse::compiler
