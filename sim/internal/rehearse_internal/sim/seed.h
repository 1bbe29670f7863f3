// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rehearse::sim {

// Parses a seed as people write it, decimal or with "0x": "7", "0x8f3a". Returns nothing for any other text.
std::optional<std::uint64_t> parse_seed(std::string_view text);

// Completes the error text "it takes ...".
inline constexpr std::string_view kSeedTakes = "an integer from 0 to 2^64 - 1, as in 7 or 0x8f3a";

}  // namespace rehearse::sim
