// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <rehearse/job/report.h>
#include <rehearse/job/verdict.h>
#include <rehearse/sim/world_options.h>

#include <rehearse_internal/job/run_record.h>
#include "report/calls/call_drift.h"
#include "report/ranks/cause_text.h"
#include "report/ranks/rank_outcomes.h"

namespace rehearse::sim {

// How a run ended, found in its record, in the reports of its processes, or in dumps.
struct Diagnosis {
  Verdict verdict = Verdict::ok;
  CauseText headline{};                   // who caused it, where, and who waited; earlier causes stand first
  std::vector<std::string> wait_cycle{};  // one line for each edge
  std::optional<Difference> absence{};    // details if the headline is about a call that ranks never made
  std::vector<CallDrift> drifts{};        // the headline begins with the first

  // Sets the verdict, the headline with its causes, and the wait cycle of the report.
  void write_into(Report& report) const {
    report.verdict = verdict;
    report.headline = headline.text;
    report.causes = headline.causes;
    report.wait_cycle = wait_cycle;
  }
};

Diagnosis find_verdict(const WorldOptions& options, const RunRecord& record, const RankOutcomes& ends);

}  // namespace rehearse::sim
