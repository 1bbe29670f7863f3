// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <span>
#include <string>
#include <vector>

namespace rehearse {

// 0 to `size` - 1.
std::vector<int> ranks_below(int size);

// The ranks in the given order, with ranges folded: "0-1,3". Shows at most eight ranges and single ranks:
// "0,2,4,6,8,10,12,14 and 504 more".
std::string rank_numbers(std::span<const int> ranks);

// With the noun: "rank 2", "ranks 0-1,3".
std::string describe_ranks(std::span<const int> ranks);

}  // namespace rehearse
