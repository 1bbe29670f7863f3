// SPDX-License-Identifier: BSD-3-Clause
#include "checks/watch/write_log.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include <rehearse_internal/formatting/rank_list.h>

namespace rehearse::checks {
namespace {

// The write of one rank at one position in the order of its writes. `write` is null if the rank has made fewer writes.
struct Step {
  int rank;
  const Write* write;
};

// Ranks whose writes are alike, with one of these writes. sides_of() returns larger sides first; among sides of equal
// size, the side with the lowest rank.
struct WriteSide {
  std::vector<int> ranks;
  const Write* write;
};

std::vector<WriteSide> sides_of(const std::vector<Step>& steps,
                                const std::function<bool(const Write&, const Write&)>& alike) {
  std::vector<WriteSide> sides;
  for (const auto& step : steps) {
    const auto same = std::ranges::find_if(sides, [&](const WriteSide& side) {
      if (side.write == nullptr || step.write == nullptr) return side.write == step.write;
      return alike(*side.write, *step.write);
    });
    if (same != sides.end()) {
      same->ranks.push_back(step.rank);
    } else {
      sides.push_back({{step.rank}, step.write});
    }
  }
  std::ranges::stable_sort(sides,
                           [](const WriteSide& a, const WriteSide& b) { return a.ranks.size() > b.ranks.size(); });
  return sides;
}

std::string site_of(const Write& write) {
  const auto where = write.where.describe();
  return where.empty() ? "" : " at " + where;
}

std::string title_of(const Write& write) {
  return fmt::format("{} on \"{}\"{}", write.op, write.tensor, site_of(write));
}

// Ranks that make no change have the place of the change that they leave out.
std::map<int, Place> places_of(const std::vector<WriteSide>& sides) {
  std::map<int, Place> places;
  const auto& some = *std::ranges::find_if(sides, [](const WriteSide& side) { return side.write != nullptr; });
  for (const auto& side : sides) {
    for (const int rank : side.ranks) places[rank] = (side.write != nullptr ? side : some).write->where.place();
  }
  return places;
}

Divergence other_operations(const std::vector<WriteSide>& sides) {
  std::string text = "first operation that differs: ";
  for (const auto& side : sides) {
    if (&side != &sides.front()) text += "; ";
    const auto* const make = side.ranks.size() == 1 ? "makes" : "make";
    text += describe_ranks(side.ranks) + (side.write == nullptr
                                              ? fmt::format(" {} no further change before the check", make)
                                              : ": " + title_of(*side.write));
  }
  return {std::move(text), places_of(sides)};
}

// Describes ranks that did the same operation with different results: names an input that differed.
Divergence other_outcome(const std::vector<Step>& steps, const std::vector<WriteSide>& sides) {
  const auto& first = *sides.front().write;
  std::vector<int> odd;
  for (std::size_t i = 1; i < sides.size(); ++i) odd.insert(odd.end(), sides[i].ranks.begin(), sides[i].ranks.end());
  std::ranges::sort(odd);
  auto text = fmt::format("first operation that differs: {}: {} {} a different result", title_of(first),
                          describe_ranks(odd), odd.size() == 1 ? "has" : "have");
  const auto numbers = sides_of(steps, [](const Write& a, const Write& b) { return a.numbers == b.numbers; });
  if (numbers.size() > 1) {
    text += fmt::format(", because its arguments differ: {} on {}, {} on {}", numbers[0].write->numbers,
                        describe_ranks(numbers[0].ranks), numbers[1].write->numbers, describe_ranks(numbers[1].ranks));
    return {std::move(text), places_of(sides)};
  }
  for (std::size_t i = 0; i < first.operands.size(); ++i) {
    const auto hashes = sides_of(steps, [&](const Write& a, const Write& b) {
      return i < a.operands.size() && i < b.operands.size() && a.operands[i].hash == b.operands[i].hash;
    });
    if (hashes.size() == 1) continue;
    const auto& operand = first.operands[i];
    const auto gradients = sides_of(steps, [](const Write& a, const Write& b) { return a.gradient == b.gradient; });
    const bool differ = gradients.size() > 1;
    constexpr auto kCauses =
        ": it was not reduced, the reduction gave ranks other values, or it was changed afterwards";
    if (operand.is_gradient && differ) return {text + ", because its gradient differed already" + kCauses, {}};
    text += fmt::format(", because its argument \"{}\" differed already", operand.name);
    return {differ ? text + ", as did the gradient" + kCauses : std::move(text), {}};
  }
  return {std::move(text), {}};
}

}  // namespace

Divergence first_divergence(const std::map<int, std::vector<Write>>& writes, const std::vector<int>& here) {
  std::vector<int> ranks = here;
  std::ranges::sort(ranks);
  std::size_t longest = 0;
  for (const int rank : ranks) {
    const auto found = writes.find(rank);
    if (found == writes.end()) return {};
    longest = std::max(longest, found->second.size());
  }
  for (std::size_t i = 0; i < longest; ++i) {
    std::vector<Step> steps;
    for (const int rank : ranks) {
      const auto& of_rank = writes.at(rank);
      steps.push_back({rank, i < of_rank.size() ? &of_rank[i] : nullptr});
    }
    const auto by_call =
        sides_of(steps, [](const Write& a, const Write& b) { return a.op == b.op && a.tensor == b.tensor; });
    if (by_call.size() > 1) return other_operations(by_call);
    const auto by_result = sides_of(steps, [](const Write& a, const Write& b) { return a.after == b.after; });
    if (by_result.size() > 1) return other_outcome(steps, by_result);
  }
  if (longest == 0) {
    return {
        "no operator was seen that wrote to them since this check saw them first: one did before, or a collective did, "
        "or code that bypasses LibTorch's dispatcher. "
        "Nobody watches what changes an optimizer's options and state",
        {}};
  }
  return {
      "all operators wrote the same on all ranks: a collective wrote the difference, or code that bypasses LibTorch's "
      "dispatcher",
      {}};
}

}  // namespace rehearse::checks
