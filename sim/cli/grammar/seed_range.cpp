// SPDX-License-Identifier: BSD-3-Clause
#include "cli/grammar/seed_range.h"

#include <fmt/format.h>
#include <rehearse/sim/seed.h>

namespace rehearse::cli {
namespace {

constexpr std::uint64_t kCountMost = 1'000'000'000;

}  // namespace

std::optional<SeedRange> parse_seed_range(std::string_view text) {
  const auto dots = text.find("..");
  const auto first = sim::parse_seed(text.substr(0, dots));
  const auto last = dots == std::string_view::npos ? first : sim::parse_seed(text.substr(dots + 2));
  if (!first || !last || *last < *first || *last - *first >= kCountMost) return std::nullopt;
  return SeedRange{*first, *last};
}

std::string to_string(const SeedRange& range) {
  return range.first == range.last ? fmt::format("{}", range.first) : fmt::format("{}..{}", range.first, range.last);
}

}  // namespace rehearse::cli
