// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/sweep/seed_result.h"

namespace rehearse::cli {

// Two failures with the same verdict and culprit are the same bug. The culprit is the list of the calls that disagree.
// If no calls disagree, it is what a checker has found; if none has, the list of the exceptions that left ranks or, if
// there are none, of the calls in which ranks wait. Each item has its place in the source. It leaves out what changes
// between seeds: ranks, sequence numbers, values. If a time limit ended the run and the report has places, the culprit
// is the list of these places alone. Empty if the report has no such call, exception or place.
std::vector<std::string> culprit(const Report& report);

// Failing seeds with the same verdict and culprit; if there is no culprit, with the same headline apart from its
// numbers.
struct Bug {
  const Report* first = nullptr;  // the report of the lowest seed
  std::vector<std::string> culprit;
  std::vector<std::uint64_t> seeds;
};

// Bugs are in the order of their lowest seeds. The pointers point into `results`.
std::vector<Bug> bugs_of(const SeedResults& results);

// The texts of the faults that fired in the run.
std::vector<std::string> fired_faults(const Report& report);

// A remark, and all seeds with the same remark apart from its numbers. If these differ, "#" stands for each number.
struct SharedRemark {
  std::string text;
  std::vector<std::uint64_t> seeds;
};

// The remarks of seeds that ended as expected, in the order of their lowest seeds.
std::vector<SharedRemark> remarks_of(const SeedResults& results);

}  // namespace rehearse::cli
