// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <rehearse/sim/report_writers.h>
#include <rehearse/sim/world.h>

// Outside namespace rehearse, because without line tables, reports take code of that namespace for library code.
namespace checks_test {

using namespace rehearse;

// Runs two worlds, because a check must be as deterministic as the run.
inline Report run(const WorldOptions& options, const World::Body& body) {
  const auto report = World(options).run(body);
  const auto again = World(options).run(body);
  EXPECT_EQ(again.identity, report.identity);
  EXPECT_EQ(sim::to_text(again), sim::to_text(report));
  // All content of the report survives JSON.
  EXPECT_EQ(sim::to_json(sim::report_from_json(sim::to_json(report))), sim::to_json(report));
  return report;
}

inline Report run(const World::Body& body, int ranks = 4) {
  WorldOptions options;
  options.ranks = ranks;
  return run(options, body);
}

// The details of the finding that ended the run; empty if it ended in another way.
inline std::vector<std::string> details_of(const Report& report) {
  if (report.verdict != Verdict::check_failed || report.findings.empty()) return {};
  return report.findings.front().details;
}

inline bool is_said(const Report& report, const std::string& beginning) {
  for (const auto& line : details_of(report)) {
    if (line.starts_with(beginning)) return true;
  }
  return false;
}

inline std::string in_steps(const std::string& what) {
  return "steps differ from those of one process in check #1: " + what;
}

}  // namespace checks_test
