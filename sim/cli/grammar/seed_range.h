// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rehearse::cli {

// Seeds from `first` to `last`, both included.
struct SeedRange {
  std::uint64_t first = 1;
  std::uint64_t last = 1;

  std::uint64_t count() const noexcept { return last - first + 1; }  // of all 2^64 seeds: 0
};

// "1..100", "0x10..0x20", "7". Nothing for any other text, for a range that ends before it begins, and for
// one of more seeds than anybody can run.
std::optional<SeedRange> parse_seed_range(std::string_view text);

std::string to_string(const SeedRange& range);

// What such an option takes, to complete "it takes ...".
inline constexpr std::string_view kSeedRangeTakes =
    "two seeds, the smaller first, as in 1..100, or one, as in 7; at most 10^9 in all";

}  // namespace rehearse::cli
