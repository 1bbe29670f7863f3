// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rehearse::cli {

// The seeds from `first` to `last`, including both.
struct SeedRange {
  std::uint64_t first = 1;
  std::uint64_t last = 1;

  std::uint64_t count() const noexcept { return last - first + 1; }  // 0 for all 2^64 seeds
};

// Parses "1..100", "0x10..0x20", "7". Returns nothing for any other text, for a range that ends before it begins, and
// for a range with more than 10^9 seeds.
std::optional<SeedRange> parse_seed_range(std::string_view text);

std::string to_string(const SeedRange& range);

// One of `count` parts of a range of seeds; `index` counts from 1.
struct Shard {
  int index = 1;
  int count = 1;
};

// Parses "2/8". Returns nothing for any other text, if the first number is not between 1 and the second one, and if the
// second one exceeds 10^6.
std::optional<Shard> parse_shard(std::string_view text);

std::string to_string(const Shard& shard);

// The seeds of a shard. Parts are contiguous, and their sizes differ by at most one. No part may be empty.
SeedRange part_of(const SeedRange& range, const Shard& shard);

// Completes the error text "it takes ...".
inline constexpr std::string_view kSeedRangeTakes =
    "two seeds, the smaller first, as in 1..100, or one, as in 7; at most 10^9 in all";

}  // namespace rehearse::cli
