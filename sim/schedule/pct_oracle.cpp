// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/sim/pct_oracle.h>

#include <limits>

#include "schedule/drawn_points.h"

namespace rehearse::sim {
namespace {

// The number of PctOracle's own stream. RandomOracle numbers its streams by kind of choice, so it never uses this one.
constexpr std::uint64_t kStream = 0x504354;
constexpr std::uint64_t kInitial = std::uint64_t{1} << 63;  // initial priorities are at least this
constexpr std::uint64_t kChanged = std::uint64_t{1} << 62;  // change i (0, 1, ...) sets the priority to this minus i
constexpr std::uint64_t kSpun = std::uint64_t{1} << 61;     // priorities of fibers that spin are at most this
constexpr std::uint32_t kSpin = 10'000;                     // a fiber chosen more often than this in a row spins

// Short tests make tens of choices, long jobs tens of thousands.
std::uint64_t assumed_steps(RandomStream& stream) {
  constexpr std::uint64_t kLeast = 16;
  constexpr std::uint32_t kScales = 13;
  return kLeast << stream.below(kScales);
}

// A number from 1 to `most`. If `most` exceeds 32 bits, the draw is only nearly uniform.
std::uint64_t one_to(RandomStream& stream, std::uint64_t most) {
  constexpr auto kMost = std::numeric_limits<std::uint32_t>::max();
  return most <= kMost ? 1 + stream.below(static_cast<std::uint32_t>(most)) : 1 + stream.next() % most;
}

}  // namespace

std::vector<std::uint64_t> draw_points(RandomStream& stream, std::uint32_t count, std::uint64_t steps) {
  const auto most = steps > 0 ? steps : assumed_steps(stream);
  std::vector<std::uint64_t> points;
  for (std::uint32_t i = 0; i < count; ++i) points.push_back(one_to(stream, most));
  return points;
}

PctOracle::PctOracle(std::uint64_t seed, const PctOptions& options)
    : others_(seed),
      stream_(seed, kStream),
      changes_(draw_points(stream_, static_cast<std::uint32_t>(options.depth - 1), options.steps)),
      lowest_(kSpun) {}

std::uint64_t& PctOracle::priority_of(std::uint32_t candidate) {
  const std::size_t index = candidate == kTimePasses ? 0 : candidate + std::size_t{1};
  if (index >= priorities_.size()) priorities_.resize(index + 1);
  auto& priority = priorities_[index];
  if (priority == 0) priority = kInitial | stream_.next();
  return priority;
}

std::uint32_t PctOracle::highest(std::span<const std::uint32_t> fibers) {
  std::uint32_t best = 0;
  for (std::uint32_t i = 0; i < fibers.size(); ++i) {
    if (priority_of(fibers[i]) > priority_of(fibers[best])) best = i;
  }
  return best;
}

std::uint32_t PctOracle::choose(ChoiceKind kind, std::span<const std::uint32_t> candidates,
                                std::span<const std::uint32_t> weights) {
  if (kind != ChoiceKind::next_fiber) return others_.choose(kind, candidates, weights);
  ++choice_;
  auto best = highest(candidates);
  for (std::size_t change = 0; change < changes_.size(); ++change) {
    if (changes_[change] != choice_) continue;
    priority_of(candidates[best]) = kChanged - change;
    best = highest(candidates);
  }
  in_a_row_ = candidates[best] == last_ ? in_a_row_ + 1 : 1;
  if (in_a_row_ > kSpin) {
    priority_of(candidates[best]) = lowest_--;
    in_a_row_ = 0;
    best = highest(candidates);
  }
  last_ = candidates[best];
  return best;
}

}  // namespace rehearse::sim
