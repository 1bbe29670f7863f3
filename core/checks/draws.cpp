// SPDX-License-Identifier: BSD-3-Clause
#include "checks/draws.h"

#include <algorithm>
#include <vector>

#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>

#include <rehearse_internal/formatting/rank_list.h>

namespace rehearse::checks {
namespace {

bool same_engine(const at::mt19937_data_pod& a, const at::mt19937_data_pod& b) {
  return a.left_ == b.left_ && a.seed_ == b.seed_ && a.next_ == b.next_ && a.state_ == b.state_;
}

struct Side {
  GeneratorState state;
  std::vector<int> ranks;
};

// Groups the ranks whose generators are alike. Larger sides come first; among sides of equal size, the side with the
// lowest rank.
template <class Alike>
std::vector<Side> sides_of(const DrawsRound& round, const Alike& alike) {
  std::vector<Side> sides;
  for (const auto& [rank, state] : round.shown.states) {
    const auto same = std::ranges::find_if(sides, [&](const Side& side) { return alike(side.state, state); });
    if (same != sides.end()) {
      same->ranks.push_back(rank);
    } else {
      sides.push_back({state, {rank}});
    }
  }
  std::ranges::stable_sort(sides, [](const Side& a, const Side& b) { return a.ranks.size() > b.ranks.size(); });
  return sides;
}

std::string numbers_text(std::uint64_t count) { return fmt::format("{} number{}", count, count == 1 ? "" : "s"); }

// "rank 3 has drawn 17 numbers more than ranks 0-2"
std::string against(const Side& odd, const Side& most) {
  const auto who = describe_ranks(odd.ranks), others = describe_ranks(most.ranks);
  const auto* const has = odd.ranks.size() == 1 ? "has" : "have";
  if (odd.state.seed() != most.state.seed()) {
    return fmt::format("{} {} seeded with {}, {} with {}", who, odd.ranks.size() == 1 ? "was" : "were",
                       odd.state.seed(), others, most.state.seed());
  }
  if (const auto more = draws_between(most.state, odd.state))
    return fmt::format("{} {} drawn {} more than {}", who, has, numbers_text(*more), others);
  if (const auto fewer = draws_between(odd.state, most.state))
    return fmt::format("{} {} drawn {} fewer than {}", who, has, numbers_text(*fewer), others);
  return fmt::format("{} {} drawn differently from {}", who, has, others);
}

// The calls that drew differently on the two sides, or a line which says that no call did. Empty if calls were not
// watched, or if the seeds differ.
std::vector<std::string> draws_against(const Side& odd, const Side& most, const DrawsRound& round) {
  const int rank = odd.ranks.front(), other = most.ranks.front();
  const auto own = round.shown.draws.find(rank), its = round.shown.draws.find(other);
  if (own == round.shown.draws.end() || its == round.shown.draws.end()) return {};
  if (odd.state.seed() != most.state.seed()) return {};
  auto lines = other_draws(rank, own->second, other, its->second);
  if (!lines.empty()) return lines;
  return {fmt::format(
      "ranks {} and {} made the same calls, equally often: how much one of these calls draws depends on values", rank,
      other)};
}

std::string check_text(const DrawsRound& round) {
  return round.name == kDraws ? fmt::format("check #{}", round.number)
                              : fmt::format("check #{} of \"{}\"", round.number, round.name);
}

std::optional<StateFinding> check_same(const DrawsRound& round) {
  const auto sides = sides_of(round, [](const auto& a, const auto& b) { return a == b; });
  if (sides.size() < 2) return std::nullopt;
  StateFinding finding;
  finding.headline =
      fmt::format("the random generators of ranks differ in {}: {}", check_text(round), against(sides[1], sides[0]));
  const bool majority = sides[0].ranks.size() * 2 > round.here.size();
  for (std::size_t i = majority ? 1 : 0; i < sides.size(); ++i)
    finding.ranks.insert(finding.ranks.end(), sides[i].ranks.begin(), sides[i].ranks.end());
  std::ranges::sort(finding.ranks);
  finding.details = draws_against(sides[1], sides[0], round);
  for (std::size_t i = 2; i < sides.size(); ++i) finding.details.push_back(against(sides[i], sides[0]));
  finding.details.emplace_back("all that ranks draw from here on differs: shuffles, masks, initial values");
  return finding;
}

std::optional<StateFinding> check_different(const DrawsRound& round) {
  const auto alike = sides_of(round, [](const auto& a, const auto& b) { return a.seed() == b.seed(); });
  if (alike.empty() || alike.front().ranks.size() < 2) return std::nullopt;
  const auto& most = alike.front();
  const auto draws_alike = [&](const Side& side) {
    return std::ranges::all_of(side.ranks, [&](int rank) { return round.shown.states.at(rank) == side.state; });
  };
  const auto* const what =
      draws_alike(most) ? "draw the same numbers" : "draw from the same sequence, at different positions";
  StateFinding finding{fmt::format("the random generators of ranks are alike in {}: {} {} (seeded with {})",
                                   check_text(round), describe_ranks(most.ranks), what, most.state.seed()),
                       most.ranks,
                       {"give each rank its own seed: torch::manual_seed(seed + rank)"}};
  return finding;
}

}  // namespace

GeneratorState GeneratorState::of(const at::Generator& generator) {
  auto* const cpu = at::check_generator<at::CPUGeneratorImpl>(generator);
  return {cpu->engine(), cpu->next_float_normal_sample().has_value() || cpu->next_double_normal_sample().has_value()};
}

bool GeneratorState::operator==(const GeneratorState& other) const {
  return keeps_a_normal == other.keeps_a_normal && same_engine(engine.data(), other.engine.data());
}

std::optional<StateFinding> evaluate(const DrawsRound& round) {
  return round.shown.wanted == Draws::same ? check_same(round) : check_different(round);
}

// A generator state consists of 624 numbers and records how many are left. Two states can be equal only if these counts
// are equal, so compare the states only then.
std::optional<std::uint64_t> draws_between(const GeneratorState& behind, const GeneratorState& ahead) {
  constexpr std::uint64_t kMost = 1'000'000;
  constexpr int kOfAState = at::MERSENNE_STATE_N;
  auto engine = behind.engine;
  const auto goal = ahead.engine.data();
  const int apart = (engine.data().left_ - goal.left_ + kOfAState) % kOfAState;
  std::uint64_t count = 0;
  for (int step = apart == 0 ? kOfAState : apart; count + static_cast<std::uint64_t>(step) <= kMost; step = kOfAState) {
    for (int i = 0; i < step; ++i) engine();
    count += static_cast<std::uint64_t>(step);
    if (same_engine(engine.data(), goal)) return count;
  }
  return std::nullopt;
}

}  // namespace rehearse::checks
