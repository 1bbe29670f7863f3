// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <rehearse/job/report.h>

#include "report/writers/json.h"

namespace rehearse::sim {

// The lines of a report's ranks as data of a page, each story once: of 65,536 ranks most have the same. A row has the
// keys of a line in report.json, those that are empty left out, with "ranks" (rank_runs()) for "rank". "times_ns" are
// those of all its ranks in their order, or one for all.
Json rank_rows(const std::vector<RankLine>& lines);

}  // namespace rehearse::sim
