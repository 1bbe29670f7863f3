// SPDX-License-Identifier: BSD-3-Clause
#include "dumps/job_diagnosis.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <rehearse_internal/formatting/rank_list.h>

#include "report/diagnosis/standstill.h"

namespace rehearse::sim {
namespace {

constexpr std::size_t kLastCallsShown = 2;  // at most this many different last calls

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
  std::stable_sort(mismatches_.begin(), mismatches_.end(),
                   [](const GroupDiagnosis* a, const GroupDiagnosis* b) { return time_of(*a) < time_of(*b); });
  if (!mismatches_.empty()) stand_in_calls_of(*mismatches_.front());
  creations_ = diagnose_creations(job, diagnoses_);
  find_unknown();
  find_verdict();
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
        if (open.unknown) unknown_[rank] = has_dump ? "had dropped its calls of that group" : "left no dump";
      }
    }
  }
  for (const int rank : known) unknown_.erase(rank);
}

void JobDiagnosis::find_verdict() {
  if (creations_.mismatch) {
    verdict_ = Verdict::mismatch;
    headline_.text = comm::to_string(*creations_.mismatch);
  } else if (!mismatches_.empty()) {
    verdict_ = Verdict::mismatch;
    headline_.text = comm::to_string(*mismatches_.front()->mismatch);
  } else if (const auto uneven =
                 std::find_if(diagnoses_.begin(), diagnoses_.end(),
                              [](const GroupDiagnosis& diagnosis) { return !diagnosis.imbalance.empty(); });
             uneven != diagnoses_.end()) {
    verdict_ = Verdict::mismatch;
    headline_.text = uneven->imbalance;
  } else if (stands_in_.empty()) {
    const auto without = job_.without_dump();
    headline_.text = fmt::format("{}all {} calls in the dumps are complete",
                                 without.empty() ? "" : "as far as is known, ", job_.calls());
    if (!without.empty())
      headline_.text += fmt::format("; {} left no dump, so look there first", describe_ranks(without));
  } else {
    const auto waits = [](const auto& stands) { return !stands.second->waits_for.empty(); };
    std::any_of(stands_in_.begin(), stands_in_.end(), waits) ? describe_waits() : describe_stalled();
  }
}

void JobDiagnosis::describe_waits() {
  Standstill all(job_.ranks(), {}, OtherRanks::not_come, unknown_);
  for (const auto& diagnosis : diagnoses_) {
    for (const auto& open : diagnosis.open)
      all.add({open.rank, open.title, open.waits_for, stacks_.place(open.call->stack)});
  }
  auto diagnosis = all.diagnose();
  verdict_ = Verdict::deadlock;
  headline_ = std::move(diagnosis.headline);
  headline_.text += last_calls(awaited());
  wait_cycle_ = std::move(diagnosis.wait_cycle);
}

// The ranks that have a dump and wait in no call, and for which others wait.
std::vector<int> JobDiagnosis::awaited() const {
  std::set<int> ranks;
  for (const auto& diagnosis : diagnoses_) {
    for (const auto& open : diagnosis.open) {
      for (const int rank : open.waits_for) {
        if (!stands_in_.contains(rank) && !unknown_.contains(rank)) ranks.insert(rank);
      }
    }
  }
  return {ranks.begin(), ranks.end()};
}

// For example "; rank 3 called last: allreduce #6 on group "0:default_pg" at train.py:41 in step".
std::string JobDiagnosis::last_calls(const std::vector<int>& ranks) const {
  std::vector<std::pair<std::string, std::vector<int>>> told;
  for (const int rank : ranks) {
    const auto last = this->last(rank);
    const auto place = last ? stacks_.place(last->call->stack).at() : "";
    const auto what = last ? fmt::format("called last: {}{}", last->title, place) : "called nothing";
    const auto same = std::find_if(told.begin(), told.end(), [&](const auto& each) { return each.first == what; });
    if (same != told.end()) {
      same->second.push_back(rank);
    } else {
      told.push_back({what, {rank}});
    }
  }
  std::string text;
  for (std::size_t i = 0; i < std::min(told.size(), kLastCallsShown); ++i)
    text += fmt::format("; {} {}", describe_ranks(told[i].second), told[i].first);
  return text + (told.size() > kLastCallsShown ? fmt::format("; and {} more", told.size() - kLastCallsShown) : "");
}

// Finds two calls on two groups that two ranks made in different orders. On each rank's device the later call waits
// until the earlier one ends, so neither can end. Call this only if all ranks made both calls. Empty: there are none.
std::string JobDiagnosis::crossed_groups() const {
  std::map<std::pair<std::string, std::string>, int> orders;  // two calls, and a rank that made them in this order
  for (const auto& [rank, first] : stands_in_) {
    std::vector<const OpenCall*> calls;
    for (const auto& diagnosis : diagnoses_) {
      const auto own = std::find_if(diagnosis.open.begin(), diagnosis.open.end(),
                                    [rank = rank](const OpenCall& open) { return open.rank == rank; });
      if (own != diagnosis.open.end()) calls.push_back(&*own);
    }
    std::sort(calls.begin(), calls.end(),
              [](const OpenCall* a, const OpenCall* b) { return a->call->record_id < b->call->record_id; });
    for (std::size_t i = 0; i + 1 < calls.size(); ++i) {
      const auto &one = calls[i]->title, &next = calls[i + 1]->title;
      if (const auto other = orders.find({next, one}); other != orders.end()) {
        return fmt::format(
            "rank {} called {} before {}, and rank {} after it: all ranks called both with the same arguments, and "
            "neither has ended; make calls on several groups in the same order on all ranks",
            other->second, next, one, rank);
      }
      orders.try_emplace({one, next}, rank);
    }
  }
  return "";
}

// Tells about the ranks that wait in the same call as the lowest rank that waits.
void JobDiagnosis::describe_stalled() {
  if (headline_.text = crossed_groups(); !headline_.text.empty()) {
    verdict_ = Verdict::deadlock;
    return;
  }
  const auto& first = *stands_in_.begin()->second;
  std::vector<int> ranks;
  for (const auto& [rank, open] : stands_in_) {
    if (open->title == first.title) ranks.push_back(rank);
  }
  const auto place = stacks_.place(first.call->stack).at();
  verdict_ = Verdict::timeout;
  headline_.text = fmt::format(
      "{}{}: all its ranks called it{}, and on {} it has not ended; the fault probably "
      "lies below the calls (network, device, driver)",
      first.title, place, first.seen ? " alike" : "", describe_ranks(ranks));
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
