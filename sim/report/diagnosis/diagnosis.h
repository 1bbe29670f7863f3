// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <rehearse/job/report.h>
#include <rehearse/job/verdict.h>
#include <rehearse/sim/world_options.h>

#include <rehearse_internal/job/run_record.h>
#include "report/ranks/rank_outcomes.h"

namespace rehearse::sim {

// How a run ended, in one line.
struct Diagnosis {
  Verdict verdict = Verdict::ok;
  std::string headline;                 // who caused it, where, and who waited
  std::vector<Cause> causes;            // what the headline says about the beginning, earliest first
  std::vector<std::string> wait_cycle;  // one line for each edge
  std::optional<Difference> absence;    // details if the headline is about a call that ranks never made
};

Diagnosis find_verdict(const WorldOptions& options, const RunRecord& record, const RankOutcomes& ends);

}  // namespace rehearse::sim
