// SPDX-License-Identifier: BSD-3-Clause
#include "cli/real/rank_death.h"

#include <rehearse_internal/exec/machine_time.h>

#include "cli/death/death.h"

namespace rehearse::cli {
namespace {

// Adds the line of a rank about which nothing else is known.
void add_line(int rank, Report& report) {
  RankLine& line = report.rank_lines.emplace_back();
  line.rank = rank;
  line.state = RankOutcome::failed;
  line.doing = kWithoutAWord;
}

// A second interrupt may come after the rank's body has ended, while the rank waits for the other ranks. Then the line
// says how the body ended.
void add_end_of_body(const RankNote::Known& known, RankLine& line) {
  line.state = *known.ended;
  line.at = known.ended_at;
  line.doing = known.what;
  line.where.clear();
}

}  // namespace

void add_what_was_known(int rank, const RankNote::Known& known, Report& report) {
  if (report.rank_lines.empty()) add_line(rank, report);
  RankLine& line = report.rank_lines.front();
  line.last = known.completed_last;
  line.at = known.began ? kTimeZero + (exec::machine_time() - *known.began) : RankLine::kNotKnown;
  if (known.began) report.end_time = line.at;
  report.operations = known.calls;
  if (report.verdict != Verdict::interrupted) return;
  if (known.ended) return add_end_of_body(known, line);
  if (line.state == RankOutcome::blocked) line.waits_for = known.waits_for;
}

}  // namespace rehearse::cli
