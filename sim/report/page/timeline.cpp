// SPDX-License-Identifier: BSD-3-Clause
#include "report/page/timeline.h"

#include <algorithm>

namespace rehearse::sim {
namespace {

template <class Item>
std::size_t shorten_each(std::vector<std::vector<Item>>& of_ranks, std::size_t most, std::size_t least) {
  std::size_t all = 0, left_out = 0;
  for (const auto& of_rank : of_ranks) all += of_rank.size();
  if (all <= most) return 0;
  const std::size_t each = std::max(most / of_ranks.size(), least);
  for (auto& of_rank : of_ranks) {
    if (of_rank.size() <= each) continue;
    left_out += of_rank.size() - each;
    of_rank.erase(of_rank.begin(), of_rank.end() - static_cast<std::ptrdiff_t>(each));
  }
  return left_out;
}

}  // namespace

void shorten_calls(Timeline& timeline, std::size_t most) { timeline.left_out += shorten_each(timeline.calls, most, 1); }

void shorten_spans(Timeline& timeline, std::size_t most) {
  timeline.spans_left_out += shorten_each(timeline.spans, most, 0);
}

}  // namespace rehearse::sim
