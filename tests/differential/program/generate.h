// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "differential/program/program.h"

namespace rehearse_test::differential {

struct Recipe {
  std::vector<std::string> families;  // programs use only these
  int statements = 14;                // the least number, including those in blocks; fewer if too many tries fail
};

// Makes a program from a seed. Tries the program in eager mode while it grows, and keeps only statements with which
// runs_eagerly() returns true.
Program generate(std::uint64_t seed, const Recipe& recipe);

// Returns whether the program runs in eager mode, forward and backward, at two sizes. If it has branches, runs it once
// with the first block of each branch, and once with the second.
bool runs_eagerly(const Program& program);

}  // namespace rehearse_test::differential
