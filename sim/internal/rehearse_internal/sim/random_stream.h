// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <span>

namespace rehearse::sim {

// Steele, Lea and Flood's SplitMix64: spreads any seed, even a small one (1, 2, 3...), over 64 bits. Every 64-bit value
// comes out once in a period.
class SplitMix64 {
 public:
  explicit constexpr SplitMix64(std::uint64_t seed) noexcept : state_(seed) {}

  constexpr std::uint64_t next() noexcept {
    state_ += 0x9E3779B97F4A7C15ull;
    std::uint64_t word = state_;
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9ull;
    word = (word ^ (word >> 27)) * 0x94D049BB133111EBull;
    return word ^ (word >> 31);
  }

 private:
  std::uint64_t state_;
};

// Blackman and Vigna's xoshiro256**, seeded through SplitMix64 from a seed and the number of a stream. Streams of one
// seed do not share draws, so that more draws from one stream change nothing in another.
//
// This is our own generator, not one of <random>, because seeds outlive compilers: in its next release, a standard
// library may map the same bits to other numbers. A value type: a copy continues on its own. Nothing throws.
class RandomStream {
 public:
  constexpr RandomStream(std::uint64_t seed, std::uint64_t stream) noexcept {
    // Spread the seed before adding the stream: both are small numbers in practice, and (seed 1, stream 2) must differ
    // from (seed 2, stream 1).
    SplitMix64 words(SplitMix64(seed).next() + stream);
    for (std::uint64_t& word : state_) word = words.next();
  }

  // Starts in the given state of the generator. `state` must not be all zero.
  explicit constexpr RandomStream(const std::array<std::uint64_t, 4>& state) noexcept : state_(state) {}

  constexpr std::uint64_t next() noexcept {
    const std::uint64_t word = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return word;
  }

  // Each of 0..bound-1 with exactly the same probability (Lemire's multiplication with rejection). `bound` must not be
  // 0.
  constexpr std::uint32_t below(std::uint32_t bound) noexcept {
    std::uint64_t product = (next() >> 32) * bound;
    if (static_cast<std::uint32_t>(product) < bound) {
      const std::uint32_t surplus = (0u - bound) % bound;  // 2^32 mod bound
      while (static_cast<std::uint32_t>(product) < surplus) product = (next() >> 32) * bound;
    }
    return static_cast<std::uint32_t>(product >> 32);
  }

  // Index i with a probability of exactly weights[i] / sum. The sum must lie between 1 and 2^32 - 1. Takes one draw of
  // below().
  constexpr std::uint32_t weighted(std::span<const std::uint32_t> weights) noexcept {
    std::uint32_t sum = 0;
    for (const auto weight : weights) sum += weight;
    std::uint32_t drawn = below(sum);
    std::uint32_t index = 0;
    while (drawn >= weights[index]) drawn -= weights[index++];
    return index;
  }

 private:
  std::array<std::uint64_t, 4> state_{};
};

}  // namespace rehearse::sim
