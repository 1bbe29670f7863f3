// SPDX-License-Identifier: BSD-3-Clause
#include "report/diagnosis/lone_compile.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

namespace rehearse::sim {
namespace {

using compiler::Divergence;
using compiler::FunctionRecord;

// The ranks that wait for others, and the ranks for which they wait.
struct Waits {
  std::set<int> waiting, awaited;

  void add(int rank, const std::vector<int>& waits_for) {
    for (const int other : waits_for) {
      if (other == rank) continue;
      waiting.insert(rank);
      awaited.insert(other);
    }
  }
};

// If any rank could have ended a wait, assume that the waiting rank waits for the ranks that compile.
std::vector<int> ranks_that_compile(const RunRecord& record) {
  std::vector<int> ranks;
  for (const auto& function : record.journal.functions()) {
    if (function->doing() == FunctionRecord::Doing::Compiling) ranks.push_back(function->rank());
  }
  return ranks;
}

Waits waits_of(const RunRecord& record, Verdict verdict) {
  Waits waits;
  const auto& outcome = record.outcome;
  for (const auto& fiber : outcome.hang.empty() ? outcome.blocked : outcome.hang) {
    waits.add(fiber.rank, fiber.any_rank ? ranks_that_compile(record) : fiber.waits_for);
  }
  for (const auto& failure : outcome.failures) {
    if (failure.gave_up) waits.add(failure.rank, failure.gave_up->waits_for);
  }
  if (verdict != Verdict::livelock) return waits;
  for (const auto& call : record.pending) {
    if (!call.gave_up) waits.add(call.rank, call.waits_for);
  }
  return waits;
}

// The ranks whose call differs from the majority's; all ranks if there is no majority.
std::set<int> suspects_of(const comm::Mismatch& mismatch) {
  std::set<int> ranks(mismatch.second.alike.begin(), mismatch.second.alike.end());
  if (!mismatch.has_majority) ranks.insert(mismatch.first.alike.begin(), mismatch.first.alike.end());
  for (const auto& side : mismatch.others) ranks.insert(side.alike.begin(), side.alike.end());
  return ranks;
}

bool any_in(const std::vector<int>& ranks, const std::set<int>& set) {
  return std::any_of(ranks.begin(), ranks.end(), [&](int rank) { return set.contains(rank); });
}

bool is_behind(const Divergence& divergence, const Waits& waits) {
  if (any_in(divergence.latest, waits.awaited)) return true;
  if (!divergence.communicates) return false;
  return any_in(divergence.compiled, waits.awaited) || any_in(divergence.compiled, waits.waiting);
}

bool is_behind(const Divergence& divergence, const std::set<int>& suspects) {
  return any_in(divergence.communicates ? divergence.compiled : divergence.latest, suspects);
}

}  // namespace

std::optional<Divergence> lone_compile_behind(const RunRecord& record, Verdict verdict) {
  auto all = compiler::divergences(record.journal);
  const bool is_mismatch = !record.mismatches.empty();
  const auto suspects = is_mismatch ? suspects_of(record.mismatches.front()) : std::set<int>();
  const auto waits = is_mismatch ? Waits() : waits_of(record, verdict);
  for (auto each = all.rbegin(); each != all.rend(); ++each) {
    if (is_mismatch ? is_behind(*each, suspects) : is_behind(*each, waits)) return std::move(*each);
  }
  return std::nullopt;
}

}  // namespace rehearse::sim
