// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <rehearse/sim/report_writers.h>
#include <rehearse/sim/world.h>

#include "golden_file.h"

namespace rehearse::golden {

inline Report run_world(const World::Body& body, int ranks, std::uint64_t seed = 1) {
  WorldOptions options;
  options.ranks = ranks;
  options.seed = seed;
  return World(options).run(body);
}

// Compares the report with its file. Leaves out the numbers that depend on the schedule and not on the mistake.
inline void expect_golden_report(Report report, const std::string& name) {
  report.identity = report.decisions = report.switches = 0;
  expect_golden(sim::to_text(report), "world_" + name + ".txt");
}

}  // namespace rehearse::golden
