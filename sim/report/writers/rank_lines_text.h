// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <rehearse/job/report.h>

namespace rehearse::sim {

// The part of a report that says how each rank ended. Ranks that ended alike share a line.
std::string rank_lines_text(const std::vector<RankLine>& lines, std::size_t width);

}  // namespace rehearse::sim
