// SPDX-License-Identifier: BSD-3-Clause
#include "report/diagnosis/recovery_remarks.h"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rehearse_internal/formatting/rank_list.h>

namespace rehearse::sim {
namespace {

using elastic::CheckpointJournal;
using Restored = CheckpointJournal::Restored;

constexpr std::size_t kRoundsShown = 3;
constexpr std::size_t kTensorsShown = 3;

// The ranks of one round that resumed from the same checkpoint.
struct Recovery {
  Restored first;
  std::vector<int> ranks;
};

std::vector<Recovery> recoveries_of(const CheckpointJournal& journal) {
  std::vector<Recovery> recoveries;
  for (const Restored& restored : journal.restored()) {
    const auto same = std::find_if(recoveries.begin(), recoveries.end(), [&](const Recovery& recovery) {
      return recovery.first.in == restored.in && recovery.first.saved_in == restored.saved_in &&
             recovery.first.steps == restored.steps;
    });
    if (same == recoveries.end()) {
      recoveries.push_back({restored, {restored.rank}});
    } else {
      same->ranks.push_back(restored.rank);
    }
  }
  for (Recovery& recovery : recoveries) std::sort(recovery.ranks.begin(), recovery.ranks.end());
  return recoveries;
}

std::string at_text(const exec::CallSite& where, const Places& places) {
  const std::string place = places.text(where);
  return place.empty() ? "" : fmt::format(" at {}", place);
}

// For example "what rank 0 had saved in round 1 at train.cpp:41 in body".
std::string source_text(const Restored& restored, const CheckpointJournal& journal, const Places& places) {
  const auto& all = journal.saved();
  const auto saved = std::find_if(all.begin(), all.end(), [&](const CheckpointJournal::Saved& each) {
    return each.is_kept && each.in == restored.saved_in && each.steps == restored.steps;
  });
  if (saved == all.end()) return fmt::format("what was saved in round {}", restored.saved_in.round);
  return fmt::format("what rank {} had saved in round {}{}", saved->rank, saved->in.round,
                     at_text(saved->where, places));
}

std::string steps_text(std::int64_t steps) { return fmt::format("{} step{}", steps, steps == 1 ? "" : "s"); }

std::string difference_text(const elastic::StateDifference& difference) {
  std::vector<std::string> names;
  for (const auto& name : difference.tensors) {
    if (names.size() < kTensorsShown) names.push_back(fmt::format("\"{}\"", name));
  }
  const std::size_t more = difference.tensors.size() - names.size();
  if (more > 0) names.push_back(fmt::format("{} more", more));
  return fmt::format(
      "compared with the run of the same seed without faults, the saved states differ first after {}: {} of {}, in "
      "round {}",
      steps_text(difference.steps), fmt::join(names, ", "), describe_ranks(difference.ranks), difference.in.round);
}

}  // namespace

std::vector<std::string> recovery_remarks(const RunRecord& record, const Places& places) {
  std::vector<std::string> lines;
  if (!record.without_faults) return lines;
  const auto recoveries = recoveries_of(record.checkpoints);
  const std::size_t hidden = recoveries.size() - std::min(recoveries.size(), kRoundsShown);
  if (hidden > 0) lines.push_back(fmt::format("before that, ranks had resumed from a checkpoint {} times", hidden));
  for (std::size_t i = hidden; i < recoveries.size(); ++i) {
    const Restored& first = recoveries[i].first;
    lines.push_back(fmt::format("{} resumed in round {}{} after {}, from {}", describe_ranks(recoveries[i].ranks),
                                first.in.round, at_text(first.where, places), steps_text(first.steps),
                                source_text(first, record.checkpoints, places)));
  }
  const auto& without = *record.without_faults;
  if (!without.failure.empty()) {
    lines.push_back(fmt::format("the run of the same seed without faults fails, too: {}", without.failure));
  }
  if (const auto difference = elastic::first_difference(record.checkpoints, without.checkpoints)) {
    lines.push_back(difference_text(*difference));
  } else {
    lines.push_back("all saved states equal those of the run of the same seed without faults");
  }
  return lines;
}

}  // namespace rehearse::sim
