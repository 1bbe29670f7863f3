// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/sim/order_oracle.h>

#include <algorithm>

#include "schedule/drawn_points.h"

namespace rehearse::sim {
namespace {

constexpr std::uint64_t kStreamOfOrders = 0x4F52444552;  // RandomOracle numbers its streams by kind of choice
constexpr std::uint32_t kDeviationsMost = 2;
constexpr std::uint32_t kSpinInOrder = 1'000;  // a fiber chosen more often than this in a row spins

}  // namespace

OrderOracle::OrderOracle(Order order, std::uint64_t seed, std::uint64_t steps)
    : order_(order), others_(seed), stream_(seed, kStreamOfOrders) {
  if (order == Order::drawn) deviations_ = draw_points(stream_, stream_.below(kDeviationsMost + 1), steps);
}

std::uint64_t OrderOracle::place_of(std::uint32_t fiber) {
  if (order_ == Order::ascending) return fiber;
  if (order_ == Order::descending) return ~std::uint64_t{fiber};
  if (fiber >= places_.size()) places_.resize(fiber + std::size_t{1});
  auto& place = places_[fiber];
  if (place == 0) place = stream_.next() | 1;
  return place;
}

std::uint32_t OrderOracle::first_of(std::span<const std::uint32_t> fibers) {
  std::uint32_t first = 0;
  for (std::uint32_t i = 1; i < fibers.size(); ++i) {
    if (place_of(fibers[i]) < place_of(fibers[first])) first = i;
  }
  return first;
}

std::uint32_t OrderOracle::next(std::span<const std::uint32_t> candidates) {
  const auto fibers = candidates.back() == kTimePasses ? candidates.first(candidates.size() - 1) : candidates;
  const auto last = static_cast<std::uint32_t>(std::ranges::find(fibers, last_) - fibers.begin());
  if (last == fibers.size()) return first_of(fibers);
  if (++in_a_row_ <= kSpinInOrder || fibers.size() == 1) return last;
  in_a_row_ = 0;
  std::vector<std::uint32_t> others(fibers.begin(), fibers.end());
  others.erase(others.begin() + last);
  const auto first = first_of(others);
  return first < last ? first : first + 1;
}

std::uint32_t OrderOracle::choose(ChoiceKind kind, std::span<const std::uint32_t> candidates,
                                  std::span<const std::uint32_t> weights) {
  if (kind != ChoiceKind::next_fiber) return others_.choose(kind, candidates, weights);
  ++choice_;
  auto answer = next(candidates);
  if (std::ranges::find(deviations_, choice_) != deviations_.end()) {
    const auto other = stream_.below(static_cast<std::uint32_t>(candidates.size() - 1));
    answer = other < answer ? other : other + 1;
  }
  if (candidates[answer] == kTimePasses) return answer;  // the fiber that ran goes on afterwards
  if (candidates[answer] != last_) in_a_row_ = 0;
  last_ = candidates[answer];
  return answer;
}

}  // namespace rehearse::sim
