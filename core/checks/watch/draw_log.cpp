// SPDX-License-Identifier: BSD-3-Clause
#include "checks/watch/draw_log.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace rehearse::checks {
namespace {

constexpr std::size_t kDrawsMost = 100'000;  // bounds the memory
constexpr std::size_t kLinesShown = 3;

// A line of the report. Draws with equal texts share a line, because many stacks may lead to the same line of code.
struct Line {
  std::string text;
  std::array<std::uint64_t, 2> times{};
};

void add(const std::vector<Drawn>& draws, std::size_t side, std::vector<Line>& lines) {
  for (const auto& drawn : draws) {
    auto text = drawn.draw.text();
    auto line = std::ranges::find_if(lines, [&](const Line& each) { return each.text == text; });
    if (line == lines.end()) line = lines.insert(lines.end(), {std::move(text)});
    line->times[side] += drawn.times;
  }
}

std::string times_text(std::uint64_t times) {
  if (times == 0) return "never";
  return times == 1 ? "once" : fmt::format("{} times", times);
}

}  // namespace

std::string Draw::text() const {
  const auto place = where.describe();
  return place.empty() ? call : fmt::format("{} at {}", call, place);
}

void DrawLog::note(Draw draw) {
  if (counts_.size() >= kDrawsMost && !index_of_.contains(draw)) return;
  const auto [entry, is_new] = index_of_.try_emplace(draw, counts_.size());
  if (is_new) counts_.push_back({std::move(draw), 0});
  ++counts_[entry->second].times;
}

void DrawLog::clear() {
  index_of_.clear();
  counts_.clear();
  taken_.clear();
}

std::vector<Drawn> DrawLog::take(const std::string& name) {
  auto& taken = taken_[name];
  taken.resize(counts_.size());
  std::vector<Drawn> since;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    const auto times = counts_[i].times - std::exchange(taken[i], counts_[i].times);
    if (times > 0) since.push_back({counts_[i].draw, times});
  }
  return since;
}

std::vector<std::string> other_draws(int rank, const std::vector<Drawn>& draws, int other,
                                     const std::vector<Drawn>& of_other) {
  std::vector<Line> lines;
  add(draws, 0, lines);
  add(of_other, 1, lines);
  std::erase_if(lines, [](const Line& line) { return line.times[0] == line.times[1]; });
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < std::min(lines.size(), kLinesShown); ++i) {
    const auto [own, its] = lines[i].times;
    texts.push_back(
        fmt::format("{}: {} on rank {}, {} on rank {}", lines[i].text, times_text(own), rank, times_text(its), other));
  }
  if (lines.size() > kLinesShown)
    texts.push_back(fmt::format("and {} more lines that drew differently", lines.size() - kLinesShown));
  return texts;
}

}  // namespace rehearse::checks
