// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/formatting/rank_list.h>

#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace rehearse {
namespace {

constexpr std::size_t kRunsShown = 8;

}  // namespace

std::vector<int> ranks_below(int size) {
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

std::string rank_numbers(std::span<const int> ranks) {
  std::vector<std::string> runs;
  std::size_t listed = 0;
  while (listed < ranks.size() && runs.size() < kRunsShown) {
    std::size_t end = listed + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    const bool single = end == listed + 1;
    runs.push_back(single ? fmt::format("{}", ranks[listed]) : fmt::format("{}-{}", ranks[listed], ranks[end - 1]));
    listed = end;
  }
  const std::string more = listed < ranks.size() ? fmt::format(" and {} more", ranks.size() - listed) : "";
  return fmt::format("{}{}", fmt::join(runs, ","), more);
}

std::string describe_ranks(std::span<const int> ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + rank_numbers(ranks);
}

}  // namespace rehearse
