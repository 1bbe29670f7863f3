// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <rehearse/exec/oracle.h>
#include <rehearse_internal/sim/oracles.h>
#include <rehearse_internal/sim/random_stream.h>

namespace rehearse::sim {

// Bounded deviations (Emmi, Qadeer, Rakamaric, POPL 2011: delay bounding). A fiber goes on as long as it can run; then
// comes the first one that can, in a fixed order. With Order::drawn, the seed draws the order, and zero to two points
// among the first `steps` choices; at such a point, the seed draws the next fiber, or that time passes. Most races need
// one or two such points, and here every point is as likely as any other. `steps` as in PctOptions::steps. All other
// kinds of choices are drawn as RandomOracle draws them with the same seed.
//
// A fiber that was taken 1,000 times in a row while others could run (it yields in a loop) gives way once. Does not
// throw.
class OrderOracle final : public Oracle {
 public:
  enum class Order { ascending, descending, drawn };  // the first two: by the fibers' ids, without deviations

  OrderOracle(Order order, std::uint64_t seed, std::uint64_t steps);

  std::uint32_t choose(ChoiceKind kind, std::span<const std::uint32_t> candidates,
                       std::span<const std::uint32_t> weights = {}) override;

 private:
  std::uint64_t place_of(std::uint32_t fiber);
  std::uint32_t first_of(std::span<const std::uint32_t> fibers);
  std::uint32_t next(std::span<const std::uint32_t> candidates);

  const Order order_;
  RandomOracle others_;
  RandomStream stream_;
  std::vector<std::uint64_t> deviations_;  // the choices at which the run leaves the order, counted from 1
  std::vector<std::uint64_t> places_;      // by fiber; 0: not seen yet
  std::uint64_t choice_ = 0;
  std::uint32_t last_ = kTimePasses;
  std::uint32_t in_a_row_ = 0;
};

}  // namespace rehearse::sim
