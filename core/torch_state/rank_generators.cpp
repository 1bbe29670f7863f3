// SPDX-License-Identifier: BSD-3-Clause
#include "torch_state/rank_generators.h"

#include <stdexcept>
#include <string>

#include <ATen/CPUGeneratorImpl.h>

namespace rehearse::torch_state {
namespace {

// SplitMix64: neighbouring inputs give unrelated seeds.
std::uint64_t seed_of_rank(std::uint64_t seed, int rank) {
  std::uint64_t x = seed + (static_cast<std::uint64_t>(rank) + 1) * 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

}  // namespace

std::uint64_t RankGenerators::seed_of(int rank) const noexcept {
  return same_on_all_ranks_ ? seed_ : seed_of_rank(seed_, rank);
}

void RankGenerators::renew(int rank) {
  const auto index = static_cast<std::size_t>(rank);
  if (index >= generators_.size()) generators_.resize(index + 1);
  generators_[index] = at::detail::createCPUGenerator(seed_of(rank));
}

const at::Generator& RankGenerators::of(int rank) const {
  const auto index = static_cast<std::size_t>(rank);
  if (index >= generators_.size() || !generators_[index].defined()) {
    throw std::out_of_range("rehearse: rank " + std::to_string(rank) + " has no generator yet");
  }
  return generators_[index];
}

}  // namespace rehearse::torch_state
