// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <rehearse/job/report.h>

namespace rehearse::cli {

struct SeedResult {
  std::uint64_t identity = 0;          // Report::identity of the run
  double seconds = 0;                  // real time
  std::unique_ptr<Report> failure;     // null: the seed ended as expected
  std::vector<std::string> files{};    // World::files_written()
  std::vector<std::string> remarks{};  // of a run that ended as expected
  std::string strategy{};              // how the seed was scheduled, without the number of steps
};

// Sorted by seed, so that the output does not depend on which worker was faster.
using SeedResults = std::map<std::uint64_t, SeedResult>;

}  // namespace rehearse::cli
