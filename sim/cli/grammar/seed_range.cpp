// SPDX-License-Identifier: BSD-3-Clause
#include "cli/grammar/seed_range.h"

#include <charconv>

#include <fmt/format.h>
#include <rehearse_internal/sim/seed.h>

namespace rehearse::cli {
namespace {

constexpr std::uint64_t kCountMost = 1'000'000'000;
constexpr int kShardsMost = 1'000'000;

std::optional<int> number_to(std::string_view text, int most) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1 || value > most) return std::nullopt;
  return value;
}

}  // namespace

std::optional<SeedRange> parse_seed_range(std::string_view text) {
  const auto dots = text.find("..");
  const auto first = sim::parse_seed(text.substr(0, dots));
  const auto last = dots == std::string_view::npos ? first : sim::parse_seed(text.substr(dots + 2));
  if (!first || !last || *last < *first || *last - *first >= kCountMost) return std::nullopt;
  return SeedRange{*first, *last};
}

std::optional<Shard> parse_shard(std::string_view text) {
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto count = number_to(text.substr(slash + 1), kShardsMost);
  const auto index = number_to(text.substr(0, slash), count.value_or(1));
  if (!index || !count) return std::nullopt;
  return Shard{*index, *count};
}

std::string to_string(const Shard& shard) { return fmt::format("{}/{}", shard.index, shard.count); }

SeedRange part_of(const SeedRange& range, const Shard& shard) {
  const auto before = [&](int parts) {
    return range.count() * static_cast<std::uint64_t>(parts) / static_cast<std::uint64_t>(shard.count);
  };
  return {range.first + before(shard.index - 1), range.first + before(shard.index) - 1};
}

std::string to_string(const SeedRange& range) {
  return range.first == range.last ? fmt::format("{}", range.first) : fmt::format("{}..{}", range.first, range.last);
}

}  // namespace rehearse::cli
