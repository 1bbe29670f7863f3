// SPDX-License-Identifier: BSD-3-Clause
// The table in docs/DETERMINISM.md: how many seeds of each strategy find each race. Arguments: the first and the last
// seed (by default 3 and 302), and a part of a program's name.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "sim/search/race_programs.h"

namespace {

using rehearse::sim::Strategy;

Strategy with_steps(Strategy strategy, const rehearse::sim::ProbedSteps& steps) {
  strategy.pct.steps = strategy.preempt ? steps.preempted : steps.plain;
  return strategy;
}

void print_row(const rehearse_test::RaceProgram& program, const std::vector<Strategy>& strategies, std::uint64_t first,
               std::uint64_t last) {
  std::printf("| %s |", program.name.c_str());
  const auto steps = rehearse_test::probe(program);
  for (const auto& strategy : strategies) {
    int found = 0;
    for (auto seed = first; seed <= last; ++seed)
      found += rehearse_test::failure_of(program, seed, with_steps(strategy, steps)).empty() ? 0 : 1;
    std::printf(" %d |", found);
    std::fflush(stdout);
  }
  std::printf(" %d |\n", rehearse_test::found_by_sweep(program, first, last));
}

}  // namespace

int main(int argc, char** argv) {
  const auto first = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 3;
  const auto last = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 302;
  const std::string part = argc > 3 ? argv[3] : "";
  auto strategies = rehearse::sim::portfolio();
  strategies.insert(strategies.begin(), {{}, {.preempt = true}});
  std::printf("| program |");
  for (const auto& strategy : strategies) std::printf(" %s |", rehearse::sim::to_string(strategy).c_str());
  std::printf(" sweep |\n|---|");
  for (std::size_t i = 0; i <= strategies.size(); ++i) std::printf("---|");
  std::printf("\n");
  for (const auto& program : rehearse_test::race_programs()) {
    if (program.name.find(part) != std::string::npos) print_row(program, strategies, first, last);
  }
  return 0;
}
