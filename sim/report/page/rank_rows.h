// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <vector>

#include <rehearse/job/report.h>

#include "report/writers/json.h"

namespace rehearse::sim {

// The lines of a report's ranks as data of a page, each story once: of 65,536 ranks most have the same. A row has the
// keys of a line in report.json, those that are empty left out, with "ranks" (rank_runs()) for "rank". "times_ns" are
// those of all its ranks in their order, or one for all.
struct RankRows {
  Json rows;
  std::size_t ranks_left_out = 0;
};

// Of more than `most` rows, those whose state is the rarest stay: a failed rank of 65,536 is what the reader looks for.
RankRows rank_rows(const std::vector<RankLine>& lines, std::size_t most = 20'000);

}  // namespace rehearse::sim
