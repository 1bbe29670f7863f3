// SPDX-License-Identifier: BSD-3-Clause
#include "compile/rank_cache.h"

#include <algorithm>

#include <rehearse_internal/exec/this_rank.h>

namespace rehearse::compiler {

Entry* RankCache::find(const LeafList& leaves, const GlobalState& state) {
  for (std::size_t i = 0; i < by_use.size(); ++i) {
    if (!by_use[i]->holds(leaves, state)) continue;
    std::rotate(by_use.begin(), by_use.begin() + static_cast<std::ptrdiff_t>(i),
                by_use.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    return by_use.front();
  }
  return nullptr;
}

std::size_t RankCache::paths() const {
  std::size_t paths = 0;
  for (const Entry& entry : entries) paths += entry.paths();
  return paths;
}

RankCache::Lock::Lock(RankCache& cache) : cache_(cache) {
  const exec::FixedObserver observer("compile: another fiber of the rank compiles the same function");
  while (cache_.busy_ && exec::this_rank::is_fiber()) cache_.waiting_.wait(observer);
  cache_.busy_ = true;
}

RankCache::Lock::~Lock() {
  cache_.busy_ = false;
  cache_.waiting_.notify_one();
}

}  // namespace rehearse::compiler
