// SPDX-License-Identifier: BSD-3-Clause
#include "checks/uneven_parts.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rehearse_internal/formatting/rank_list.h>

#include "checks/values/weight_fit.h"

namespace rehearse::checks {
namespace {

// "0.2 on rank 0, 1.8 on ranks 1,3": groups ranks with equal values. `behind_first`: a text to add behind the first
// value.
std::string by_rank(const std::vector<int>& ranks, const std::vector<double>& values, const char* behind_first) {
  constexpr std::size_t kSidesShown = 6;
  std::vector<std::pair<std::string, std::vector<int>>> sides;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    auto value = fmt::format("{:.3g}", values[i]);
    const auto same = std::ranges::find_if(sides, [&](const auto& side) { return side.first == value; });
    if (same != sides.end()) {
      same->second.push_back(ranks[i]);
    } else {
      sides.emplace_back(std::move(value), std::vector{ranks[i]});
    }
  }
  std::vector<std::string> texts;
  for (const auto& [value, of_side] : sides) {
    if (texts.size() == kSidesShown) break;
    texts.push_back(fmt::format("{}{} on {}", value, texts.empty() ? behind_first : "", describe_ranks(of_side)));
  }
  if (texts.size() < sides.size()) texts.emplace_back("...");
  return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace

std::optional<UnevenParts> uneven_parts(const std::vector<ReducedGradient>& gradients, const Reductions& reductions,
                                        double tolerance) {
  std::optional<WeightFit> fit;
  std::vector<int> ranks;
  for (const auto& each : gradients) {
    const auto found = reductions.parts_of(each.gradient);
    if (!found || (fit && found->ranks != ranks)) continue;
    if (!fit) fit.emplace(found->ranks.size());
    ranks = found->ranks;
    fit->add(found->parts, each.reference);
  }
  if (!fit || ranks.size() < 2) return std::nullopt;
  const auto weights = fit->weights(tolerance != 0 ? tolerance : 1e-3);
  if (!weights) return std::nullopt;
  const auto [least, most] = std::minmax_element(weights->begin(), weights->end());
  if (*most - *least <= 1e-2 * *most) return std::nullopt;
  // The weights of means over parts of a batch add up to the number of ranks. If one rank scales its loss, they do not.
  const double sum = std::accumulate(weights->begin(), weights->end(), 0.0);
  const auto ranks_in_all = static_cast<double>(ranks.size());
  if (std::abs(sum - ranks_in_all) > 1e-2 * ranks_in_all) return std::nullopt;
  std::vector<double> shares;
  for (const double weight : *weights) shares.push_back(weight / sum);
  return UnevenParts{fmt::format("ranks have parts of different sizes ({}), and each part counts for {:.3g}",
                                 by_rank(ranks, shares, " of all"), 1.0 / static_cast<double>(ranks.size())),
                     fmt::format("it would be right with each rank's part multiplied by {}: the mean of the ranks' "
                                 "means is the mean over all only if all parts have the same size",
                                 by_rank(ranks, *weights, ""))};
}

}  // namespace rehearse::checks
