// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <rehearse/sim/world.h>

namespace rehearse_test {

// A program with a race that real machines lose now and then, or the right program that comes nearest to it.
struct RaceProgram {
  std::string name;
  int ranks = 2;
  rehearse::World::Body body;
  std::function<bool()> shows = {};  // whether a run that was OK shows the bug; empty: only the verdict does
  bool is_right = false;
};

const std::vector<RaceProgram>& race_programs();

// Runs the program once. Returns the report's headline if the run shows the bug; else an empty text.
std::string failure_of(const RaceProgram& program, std::uint64_t seed, const rehearse::sim::Strategy& strategy);

// How many choices of the next fiber a run makes.
rehearse::sim::ProbedSteps probe(const RaceProgram& program);

// How many of the seeds `first` to `last` show the bug, if their strategies are those of a sweep. `failures`: gets the
// texts of failure_of().
int found_by_sweep(const RaceProgram& program, std::uint64_t first, std::uint64_t last,
                   std::vector<std::string>* failures = nullptr);

}  // namespace rehearse_test
