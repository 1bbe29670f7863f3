// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/job/rank_outcome.h>

#include <array>
#include <cstddef>

namespace rehearse {
namespace {

struct OutcomeRow {
  RankOutcome outcome;
  std::string_view name;
};

// The names are part of the JSON report's format.
constexpr std::array kOutcomes{
    OutcomeRow{RankOutcome::returned, "returned"}, OutcomeRow{RankOutcome::failed, "failed"},
    OutcomeRow{RankOutcome::blocked, "blocked"},   OutcomeRow{RankOutcome::stopped, "stopped"},
    OutcomeRow{RankOutcome::crashed, "crashed"},
};

constexpr bool outcomes_follow_enum() {
  for (std::size_t row = 0; row < kOutcomes.size(); ++row) {
    if (static_cast<std::size_t>(kOutcomes[row].outcome) != row) return false;
  }
  return true;
}
static_assert(outcomes_follow_enum(), "an outcome is its row's index");

}  // namespace

std::string_view to_string(RankOutcome outcome) noexcept { return kOutcomes[static_cast<std::size_t>(outcome)].name; }

std::optional<RankOutcome> rank_outcome_from_string(std::string_view name) noexcept {
  for (const OutcomeRow& row : kOutcomes) {
    if (row.name == name) return row.outcome;
  }
  return std::nullopt;
}

}  // namespace rehearse
