// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>

#include <rehearse/exec/oracle.h>
#include <rehearse_internal/sim/oracles.h>
#include <rehearse_internal/sim/random_stream.h>

namespace rehearse::sim {

// Partial order sampling (Yuan, Yang, Gu, CAV 2018). The next step of each fiber has a random priority, and the highest
// one runs. Then the fiber's following step draws a new priority, and so does each step that touches what the one that
// ran has touched (FiberFacts::next_access()), if one of the two changes it. All other kinds of choices are drawn as
// RandomOracle draws them with the same seed. Does not throw.
class PosOracle final : public Oracle {
 public:
  explicit PosOracle(std::uint64_t seed);

  bool begin(const FiberFacts& facts) override;
  std::uint32_t choose(ChoiceKind kind, std::span<const std::uint32_t> candidates,
                       std::span<const std::uint32_t> weights = {}) override;

 private:
  Access access_of(std::uint32_t candidate) const;

  RandomOracle others_;
  RandomStream stream_;
  const FiberFacts* facts_ = nullptr;
  std::unordered_map<std::uint32_t, std::uint64_t> priorities_;  // by candidate
};

}  // namespace rehearse::sim
