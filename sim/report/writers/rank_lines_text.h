// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <rehearse/job/report.h>

namespace rehearse::sim {

// The part of a report that says how each rank ended. Ranks that ended alike share a line. `clock`: what "t=" counts,
// such as "virtual time". The text names the clock at the first "t=" only. `width`: where lines are wrapped, in bytes.
std::string rank_lines_text(const std::vector<RankLine>& lines, std::string_view clock, std::size_t width);

}  // namespace rehearse::sim
