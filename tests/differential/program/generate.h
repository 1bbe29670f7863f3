// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "differential/program/program.h"

namespace rehearse_test::differential {

struct Recipe {
  std::vector<std::string> families;  // programs use only these
  int statements = 14;                // minimum for a program, including those in blocks
};

// Makes a program from a seed. It runs in eager mode, forward and backward, at three sizes and through all of its
// blocks.
Program generate(std::uint64_t seed, const Recipe& recipe);

// Returns whether the program runs in eager mode through all of its blocks, at the sizes of the first calls.
bool runs_eagerly(const Program& program);

}  // namespace rehearse_test::differential
