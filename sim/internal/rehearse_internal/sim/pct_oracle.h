// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <rehearse/exec/oracle.h>
#include <rehearse/sim/schedule.h>
#include <rehearse_internal/sim/oracles.h>
#include <rehearse_internal/sim/random_stream.h>

namespace rehearse::sim {

// Probabilistic concurrency testing (Burckhardt, Kothari, Musuvathi, Nagarakatte, ASPLOS 2010). Each fiber has a random
// priority, and the runnable fiber with the highest priority runs; that time passes counts as a fiber. At depth - 1
// random points among the first `steps` choices, the fiber that would run drops below all fibers that have not dropped
// yet. If a bug shows whenever `depth` particular events come in one particular order, a seed finds it with a
// probability of at least
//
//   1 / (fibers * steps^(depth - 1))
//
// provided that the run makes at most `steps` choices of the next fiber among two or more. If `steps` is 0, each seed
// assumes one of the 13 powers of two from 16 to 65,536: for a run within that range, one seed in 13 assumes the next
// power of two above its length. All other kinds of choices are drawn as RandomOracle draws them with the same seed.
//
// Beyond the paper: a fiber that was taken 10,000 times in a row while others could run (it yields in a loop) drops
// below all others, which would starve otherwise. Does not throw.
class PctOracle final : public Oracle {
 public:
  PctOracle(std::uint64_t seed, const PctOptions& options);

  std::uint32_t choose(ChoiceKind kind, std::span<const std::uint32_t> candidates,
                       std::span<const std::uint32_t> weights = {}) override;

 private:
  std::uint32_t highest(std::span<const std::uint32_t> fibers);
  std::uint64_t& priority_of(std::uint32_t candidate);

  RandomOracle others_;
  RandomStream stream_;
  std::vector<std::uint64_t> changes_;     // the choices at which priorities change, counted from 1
  std::vector<std::uint64_t> priorities_;  // of time, then by fiber; 0: not seen yet
  std::uint64_t choice_ = 0;
  std::uint64_t lowest_;
  std::uint32_t last_ = 0;
  std::uint32_t in_a_row_ = 0;
};

}  // namespace rehearse::sim
