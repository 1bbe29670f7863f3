// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Generator.h>

namespace rehearse::torch_state {

// The default CPU generator of each rank.
class RankGenerators {
 public:
  // `same_on_all_ranks`: if false, each rank gets its own seed, a function of `seed` and the rank.
  RankGenerators(std::uint64_t seed, bool same_on_all_ranks) : seed_(seed), same_on_all_ranks_(same_on_all_ranks) {}

  std::uint64_t seed_of(int rank) const noexcept;

  // Makes a new, freshly seeded generator for the rank.
  void renew(int rank);

  // Throws std::out_of_range if the rank has no generator yet.
  const at::Generator& of(int rank) const;

 private:
  const std::uint64_t seed_;
  const bool same_on_all_ranks_;
  std::vector<at::Generator> generators_;  // by rank
};

}  // namespace rehearse::torch_state
