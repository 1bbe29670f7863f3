// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <rehearse/job/report.h>

namespace rehearse::sim {

// Ranks without their noun: "2", "0-1,3", "0,2,4 and 509 more".
std::string rank_numbers(const std::vector<int>& ranks);

// The part of a report that says how each rank ended; ranks with the same story share a line.
std::string rank_lines_text(const std::vector<RankLine>& lines, std::size_t width);

}  // namespace rehearse::sim
