// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "report/writers/json.h"

namespace rehearse::sim {

// Ranks as their runs, one after the other: 0, 1, 2 and 5 are [0, 2, 5, 5]. Ranks keep their order.
Json rank_runs(const std::vector<int>& ranks);

}  // namespace rehearse::sim
