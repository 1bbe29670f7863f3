// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/sweep/seed_result.h"

namespace rehearse::cli {

// What makes two failures the same bug: the calls that disagree, that failed, or that are waited in, with
// their places in the source, without what changes from seed to seed (ranks, sequence numbers, values); where a
// time limit ended the run, the places alone. One part a line; none where the report knows of no rank.
std::vector<std::string> culprit(const Report& report);

// Failing seeds with the same verdict and the same culprit; without one, the same headline but for its numbers.
struct Bug {
  const Report* first = nullptr;  // of the lowest seed
  std::vector<std::string> culprit;
  std::vector<std::uint64_t> seeds;
};

// In order of their lowest seeds. Points into `results`.
std::vector<Bug> bugs_of(const SeedResults& results);

}  // namespace rehearse::cli
