// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "report/writers/json.h"

namespace rehearse::sim {

// Ranks as runs, each by its first and last rank: 0, 1, 2 and 5 become [0, 2, 5, 5]. Keeps the order of the ranks.
Json rank_runs(const std::vector<int>& ranks);

}  // namespace rehearse::sim
