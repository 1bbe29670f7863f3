// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "differential/program/program.h"

namespace rehearse_test::differential {

struct Recipe {
  std::vector<std::string> families;  // the only ones that programs use
  int statements = 14;                // how many a program has at least, counted with those in blocks
};

// A program from a seed. It runs eagerly, forward and backward, at three sizes and through all of its blocks.
Program generate(std::uint64_t seed, const Recipe& recipe);

// Does it run eagerly through all of its blocks, at the sizes of the first calls?
bool runs_eagerly(const Program& program);

}  // namespace rehearse_test::differential
