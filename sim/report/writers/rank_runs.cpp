// SPDX-License-Identifier: BSD-3-Clause
#include "report/writers/rank_runs.h"

#include <cstddef>

namespace rehearse::sim {

Json rank_runs(const std::vector<int>& ranks) {
  Json runs = Json::array();
  for (std::size_t first = 0; first < ranks.size();) {
    std::size_t last = first;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    runs.push_back(ranks[first]);
    runs.push_back(ranks[last]);
    first = last + 1;
  }
  return runs;
}

}  // namespace rehearse::sim
