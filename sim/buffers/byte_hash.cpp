// SPDX-License-Identifier: BSD-3-Clause
#include "byte_hash.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace rehearse::sim {
namespace {

constexpr std::size_t kReadWhole = std::size_t{256} << 10;
constexpr std::size_t kReadAtEnds = std::size_t{64} << 10;
constexpr std::size_t kSamples = 2'048;
constexpr std::size_t kSampleBytes = 64;
constexpr std::size_t kFetchAhead = 16;  // prefetch this many samples: in a long run, each lies on a page of its own

// Four lanes, each a chain of multiplications, keep up with the speed of memory.
class Hasher {
 public:
  void add(const std::byte* data, std::size_t bytes) noexcept {
    for (; bytes >= sizeof lanes_; data += sizeof lanes_, bytes -= sizeof lanes_) mix(data);
    if (bytes == 0) return;
    std::byte rest[sizeof lanes_] = {};
    std::memcpy(rest, data, bytes);
    mix(rest);
  }

  std::uint64_t value() const noexcept {
    std::uint64_t all = 0;
    for (const auto lane : lanes_) all = (all ^ (lane ^ (lane >> 29))) * kOdd;
    return all ^ (all >> 32);
  }

 private:
  static constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15ull;

  void mix(const std::byte* data) noexcept {
    std::uint64_t words[4];
    std::memcpy(words, data, sizeof words);
    for (int i = 0; i < 4; ++i) {
      const auto mixed = (lanes_[i] ^ words[i]) * kOdd;
      lanes_[i] = (mixed << 31) | (mixed >> 33);
    }
  }

  std::uint64_t lanes_[4] = {1, 2, 3, 4};
};

void add_run(const ByteSpan& run, Hasher& hasher) noexcept {
  const auto bytes = run.size();
  if (bytes <= kReadWhole) return hasher.add(run.begin, bytes);
  hasher.add(run.begin, kReadAtEnds);
  const auto distance = (bytes - 2 * kReadAtEnds - kSampleBytes) / (kSamples - 1);
  const auto* const samples = run.begin + kReadAtEnds;
  for (std::size_t i = 0; i < kSamples; ++i) {
    __builtin_prefetch(samples + std::min(i + kFetchAhead, kSamples - 1) * distance);
    hasher.add(samples + i * distance, kSampleBytes);
  }
  hasher.add(run.end - kReadAtEnds, kReadAtEnds);
}

}  // namespace

std::uint64_t hash_of(const Footprint& bytes) noexcept {
  Hasher hasher;
  for (const auto& run : bytes.runs()) add_run(run, hasher);
  return hasher.value();
}

}  // namespace rehearse::sim
