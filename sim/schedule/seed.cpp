// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/sim/seed.h>

#include <charconv>

namespace rehearse::sim {

std::optional<std::uint64_t> parse_seed(std::string_view text) {
  const bool hex = text.starts_with("0x");
  if (hex) text.remove_prefix(2);
  std::uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed, hex ? 16 : 10);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return seed;
}

}  // namespace rehearse::sim
