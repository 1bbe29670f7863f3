// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/sim/pos_oracle.h>

namespace rehearse::sim {
namespace {

constexpr std::uint64_t kStreamOfPos = 0x504F53;  // RandomOracle numbers its streams by kind of choice

}  // namespace

PosOracle::PosOracle(std::uint64_t seed) : others_(seed), stream_(seed, kStreamOfPos) {}

bool PosOracle::begin(const FiberFacts& facts) {
  facts_ = &facts;
  return true;
}

Access PosOracle::access_of(std::uint32_t candidate) const {
  return facts_ == nullptr || candidate == kTimePasses ? Access() : facts_->next_access(candidate);
}

std::uint32_t PosOracle::choose(ChoiceKind kind, std::span<const std::uint32_t> candidates,
                                std::span<const std::uint32_t> weights) {
  if (kind != ChoiceKind::next_fiber) return others_.choose(kind, candidates, weights);
  std::uint32_t best = 0;
  std::uint64_t highest = 0;
  for (std::uint32_t i = 0; i < candidates.size(); ++i) {
    const auto [entry, is_new] = priorities_.try_emplace(candidates[i]);
    if (is_new) entry->second = stream_.next();
    if (entry->second >= highest) {
      best = i;
      highest = entry->second;
    }
  }
  const auto ran = access_of(candidates[best]);
  priorities_.erase(candidates[best]);
  for (const auto candidate : candidates) {
    if (ran.conflicts_with(access_of(candidate))) priorities_.erase(candidate);
  }
  return best;
}

}  // namespace rehearse::sim
