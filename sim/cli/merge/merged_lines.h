// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

namespace rehearse::cli {

// The last events of several ranks, oldest first, as many as the report of one run has. Each line begins with its time:
// "1.5 ms  rank 0  barrier #1 on group "world"". Lines with equal times keep their order.
std::vector<std::string> merged_events(std::vector<std::string> all);

// The remarks of several ranks, each once, in the order in which they first occur. Remarks that differ only in the rank
// at their beginning become one: "rank 0: text" and "rank 1: text" become "ranks 0-1: text".
std::vector<std::string> merged_remarks(const std::vector<std::string>& all);

}  // namespace rehearse::cli
