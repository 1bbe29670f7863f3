// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace rehearse::checks {

// Of one call of a state checker.
struct CheckOptions {
  // The n-th check of a name on one rank is compared with the n-th of that name on the others. Reports show it.
  std::string name = {};        // empty: the checker's own
  std::vector<int> ranks = {};  // of the world, whose state is compared; empty: all
  // Are buffers looked at? Nothing: those of a DistributedDataParallel that broadcasts them in its next forward are
  // not, all others are.
  std::optional<bool> buffers = {};
  // Of gradients: the relative error that is still none; 0: 1e-3 of float, 1e-6 of double, 2e-2 of shorter types.
  double tolerance = 0;
};

// What the default generators of ranks are to have in common.
enum class Draws {
  same,       // every rank has drawn the same numbers
  different,  // no two ranks draw the same
};

// What is checked although the program does not ask for it: in simulations, at each forward of a
// DistributedDataParallel that trains, and replicas once more when it is destroyed.
struct AutomaticChecks {
  bool replicas = false;  // its parameters, and its buffers where it broadcasts them, are the same on all ranks
  // No rank brings NaN or Inf into a sum, a mean or a product, and none comes out of one. No rank brings NaN into a
  // minimum or maximum.
  bool finite = false;
  std::optional<Draws> draws = {};
  // Watch each operator, so that a finding can say where it began. A run that is made again to explain a finding does.
  bool explain = false;

  bool any() const noexcept { return replicas || finite || draws || explain; }
};

}  // namespace rehearse::checks
