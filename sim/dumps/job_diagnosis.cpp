// SPDX-License-Identifier: BSD-3-Clause
#include "dumps/job_diagnosis.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

namespace rehearse::sim {
namespace {

std::int64_t time_of(const GroupDiagnosis& diagnosis) {
  auto first = std::numeric_limits<std::int64_t>::max();
  for (const auto& [rank, side] : diagnosis.sides) first = std::min(first, side.call->time_created_ns);
  return first;
}

}  // namespace

JobDiagnosis::JobDiagnosis(const DumpedJob& job, const Stacks& stacks) : job_(job), stacks_(stacks) {
  for (const auto& group : job.groups()) {
    histories_.emplace_back(job, group);
    diagnoses_.push_back(histories_.back().diagnose());
  }
  for (const auto& diagnosis : diagnoses_) {
    if (diagnosis.mismatch) mismatches_.push_back(&diagnosis);
    for (const auto& open : diagnosis.open) {
      auto& first = stands_in_.try_emplace(open.rank, &open).first->second;
      if (open.call->record_id < first->call->record_id) first = &open;
    }
  }
  std::ranges::stable_sort(mismatches_,
                           [](const GroupDiagnosis* a, const GroupDiagnosis* b) { return time_of(*a) < time_of(*b); });
  if (!mismatches_.empty()) stand_in_calls_of(*mismatches_.front());
  creations_ = diagnose_creations(job, diagnoses_);
  find_unknown();
  result_ = diagnose();
}

// The ranks stand in their calls of the mismatch, although they may have made other calls before and not waited.
void JobDiagnosis::stand_in_calls_of(const GroupDiagnosis& mismatch) {
  for (const auto& open : mismatch.open) {
    const auto side = mismatch.sides.find(open.rank);
    if (side != mismatch.sides.end() && side->second.call == open.call) stands_in_[open.rank] = &open;
  }
}

void JobDiagnosis::find_unknown() {
  std::set<int> known;
  for (const auto& diagnosis : diagnoses_) {
    for (const auto& open : diagnosis.open) {
      for (const int rank : open.waits_for) {
        if (!open.unknown) known.insert(rank);
        const bool has_dump = job_.dump_of(rank) != nullptr;
        if (open.unknown) unknown_[rank] = has_dump ? Unknown::calls_dropped : Unknown::no_dump;
      }
    }
  }
  for (const int rank : known) unknown_.erase(rank);
}

Diagnosis JobDiagnosis::diagnose() const {
  if (creations_.mismatch) return {Verdict::mismatch, {comm::to_string(*creations_.mismatch)}};
  if (!mismatches_.empty()) return {Verdict::mismatch, {comm::to_string(*mismatches_.front()->mismatch)}};
  const auto uneven =
      std::ranges::find_if(diagnoses_, [](const GroupDiagnosis& diagnosis) { return diagnosis.imbalance.has_value(); });
  if (uneven != diagnoses_.end()) return {Verdict::mismatch, {imbalance_text(*uneven->imbalance)}};
  if (stands_in_.empty()) return {Verdict::ok, {all_complete(job_.calls(), job_.without_dump())}};
  const auto waits = [](const auto& stands) { return !stands.second->waits_for.empty(); };
  return std::ranges::any_of(stands_in_, waits) ? diagnose_waits() : diagnose_stalled();
}

Diagnosis JobDiagnosis::diagnose_waits() const {
  Standstill all(job_.ranks(), {}, OtherRanks::not_come, unknown_);
  for (const auto& diagnosis : diagnoses_) {
    for (const auto& open : diagnosis.open)
      all.add({open.rank, open.title, open.waits_for, stacks_.place(open.call->stack)});
  }
  auto found = all.diagnose();
  found.headline.text += last_calls_text(last_calls_of_awaited());
  return {Verdict::deadlock, std::move(found.headline), std::move(found.wait_cycle)};
}

// The ranks that have a dump and wait in no call, and for which others wait.
std::vector<LastCall> JobDiagnosis::last_calls_of_awaited() const {
  std::set<int> ranks;
  for (const auto& diagnosis : diagnoses_) {
    for (const auto& open : diagnosis.open) {
      for (const int rank : open.waits_for) {
        if (!stands_in_.contains(rank) && !unknown_.contains(rank)) ranks.insert(rank);
      }
    }
  }
  std::vector<LastCall> calls;
  for (const int rank : ranks) {
    const auto last = this->last(rank);
    calls.push_back(last ? LastCall{rank, last->title, stacks_.place(last->call->stack)} : LastCall{rank, "", {}});
  }
  return calls;
}

// Call this only if all ranks made both calls. Nothing: there are no such calls.
std::optional<CrossedCalls> JobDiagnosis::crossed_groups() const {
  std::map<std::pair<std::string, std::string>, int> orders;  // two calls, and a rank that made them in this order
  for (const auto& [rank, first] : stands_in_) {
    std::vector<const OpenCall*> calls;
    for (const auto& diagnosis : diagnoses_) {
      const auto own =
          std::ranges::find_if(diagnosis.open, [rank = rank](const OpenCall& open) { return open.rank == rank; });
      if (own != diagnosis.open.end()) calls.push_back(&*own);
    }
    std::ranges::sort(calls,
                      [](const OpenCall* a, const OpenCall* b) { return a->call->record_id < b->call->record_id; });
    for (std::size_t i = 0; i + 1 < calls.size(); ++i) {
      const auto &one = calls[i]->title, &next = calls[i + 1]->title;
      if (const auto other = orders.find({next, one}); other != orders.end())
        return CrossedCalls{other->second, rank, next, one};
      orders.try_emplace({one, next}, rank);
    }
  }
  return std::nullopt;
}

// Tells about the ranks that wait in the same call as the lowest rank that waits.
Diagnosis JobDiagnosis::diagnose_stalled() const {
  if (const auto calls = crossed_groups()) return {Verdict::deadlock, crossed(*calls)};
  const auto& first = *stands_in_.begin()->second;
  std::vector<int> ranks;
  for (const auto& [rank, open] : stands_in_) {
    if (open->title == first.title) ranks.push_back(rank);
  }
  return {Verdict::timeout, never_ended(ranks, first.title, stacks_.place(first.call->stack), first.seen)};
}

const OpenCall* JobDiagnosis::stands_in(int rank) const {
  const auto found = stands_in_.find(rank);
  return found == stands_in_.end() ? nullptr : found->second;
}

template <class Ask>
std::optional<TitledCall> JobDiagnosis::latest(const Ask& ask) const {
  std::optional<TitledCall> latest;
  for (const auto& history : histories_) {
    auto call = ask(history);
    if (call && (!latest || call->call->record_id > latest->call->record_id)) latest = std::move(call);
  }
  return latest;
}

std::optional<TitledCall> JobDiagnosis::last(int rank) const {
  return latest([rank](const GroupHistory& history) { return history.last(rank); });
}

std::optional<TitledCall> JobDiagnosis::last_completed(int rank) const {
  return latest([rank](const GroupHistory& history) { return history.last_completed(rank); });
}

}  // namespace rehearse::sim
