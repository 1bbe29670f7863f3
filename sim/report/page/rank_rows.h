// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <vector>

#include <rehearse/job/report.h>

#include "report/writers/json.h"

namespace rehearse::sim {

// The lines of a report's ranks as data of a page. Each group of rank_groups() is a row. A row has the keys of a line
// in report.json, without "gave_up_on", "lost" and the empty ones, and with three changes: "ranks" and "waits_for" are
// runs (rank_runs()), "last" contains the place of the last call, and "times_ns" holds the times of the row's ranks in
// their order, or one time for all.
struct RankRows {
  Json rows;
  std::size_t ranks_left_out = 0;
};

// If there are more than `most` rows, the rows with the rarest states stay, because the reader looks for the one failed
// rank of 65,536.
RankRows rank_rows(const std::vector<RankLine>& lines, std::size_t most = 20'000);

}  // namespace rehearse::sim
