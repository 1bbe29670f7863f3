// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rehearse::compiler {

// The number of compilations of each call, in order.
using Counts = std::vector<int>;

// The expectation in a row of docs/SEEDS.md for one test: how it runs, and its result.
struct SeedRun {
  std::vector<int> ranks;        // sizes of the worlds; empty: one process under FakeDDP
  std::optional<double> cap_mb;  // bucket size; no value without DDP
  std::int64_t pieces = 0;       // number of graphs of each compilation
  Counts compiles;               // on rank 0
  Counts compiles_elsewhere;     // on every other rank

  bool operator==(const SeedRun&) const = default;
};

// Finds `test` ("TestSingleProc.test_no_split") in the text of the page. The k-th run of a row is the run of its k-th
// test. Throws std::runtime_error that names the test and says what the page must contain.
SeedRun seed_run_of(const std::string& page, const std::string& test);

}  // namespace rehearse::compiler
