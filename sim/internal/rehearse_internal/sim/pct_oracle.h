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

// Probabilistic concurrency testing (Burckhardt, Kothari, Musuvathi, Nagarakatte, ASPLOS 2010): each fiber has a random
// priority, the highest that can run runs, and at depth - 1 random ones of the first `steps` choices the fiber that
// would run falls below all others. A bug that shows whenever `depth` events come in one order is found by a seed with
// a probability of at least
//
//   1 / (fibers * steps^(depth - 1))
//
// where no more than `steps` choices of the next fiber are made: choices among two or more. Where `steps` is 0, a seed
// takes one of the 13 powers of two from 16 to 65,536 for it: of a run of no more choices, one seed in 13 takes the
// next higher one. What is no choice of a fiber is drawn as by RandomOracle of the same seed.
//
// Not in the paper: a fiber that has been taken 10,000 times in a row while others could run (it yields in a loop)
// falls below them, or they would starve. Does not throw.
class PctOracle final : public Oracle {
 public:
  PctOracle(std::uint64_t seed, const PctOptions& options);

  std::uint32_t choose(ChoiceKind kind, std::span<const std::uint32_t> candidates,
                       std::span<const std::uint32_t> weights = {}) override;

 private:
  std::uint32_t highest(std::span<const std::uint32_t> fibers);
  std::uint64_t& priority_of(std::uint32_t fiber);

  RandomOracle others_;
  RandomStream stream_;
  std::vector<std::uint64_t> changes_;     // the choices at which priorities change, from 1
  std::vector<std::uint64_t> priorities_;  // by fiber; 0: not seen yet
  std::uint64_t choice_ = 0;
  std::uint64_t lowest_;
  std::uint32_t last_ = 0;
  std::uint32_t in_a_row_ = 0;
};

}  // namespace rehearse::sim
