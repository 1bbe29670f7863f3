// SPDX-License-Identifier: BSD-3-Clause
#include "report/diagnosis/standstill.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rehearse_internal/formatting/rank_list.h>

#include "report/diagnosis/dead_ends.h"
#include "report/ranks/rank_outcomes.h"

namespace rehearse::sim {
namespace {

constexpr std::size_t kRingShown = 8;  // ranks in the headline; all edges follow below it
constexpr std::size_t kEdgesShown = 4;

using comm::WaitEdge;

std::string ring(const std::vector<WaitEdge>& cycle) {
  std::vector<std::string> ranks, calls;
  for (const WaitEdge& edge : cycle) {
    if (ranks.size() < kRingShown) ranks.push_back(std::to_string(edge.from));
    if (calls.size() < kEdgesShown) calls.push_back(fmt::format("rank {} in {}", edge.from, edge.call));
  }
  if (ranks.size() < cycle.size()) ranks.emplace_back("...");
  if (calls.size() < cycle.size()) calls.emplace_back("...");
  return fmt::format("ranks {} -> {} wait for each other: {}", fmt::join(ranks, " -> "), cycle.front().from,
                     fmt::join(calls, ", "));
}

}  // namespace

Standstill::Standstill(int ranks, std::map<int, std::string> crashed, OtherRanks others,
                       std::map<int, std::string> unknown)
    : crashed_(std::move(crashed)), others_(others), unknown_(std::move(unknown)) {
  for (int rank = 0; rank < ranks; ++rank) ended_.insert(ended_.end(), rank);
}

// Says why none of these ranks came: "rank 3 crashed and will never come". Or says why nobody knows whether any of them
// came. Empty if neither applies to all of them.
std::string Standstill::absent_for_good(const std::vector<int>& ranks) const {
  const auto all_in = [&](const auto& known) {
    return std::all_of(ranks.begin(), ranks.end(), [&](int rank) { return known.contains(rank); });
  };
  if (all_in(crashed_)) return describe_ranks(ranks) + " crashed and will never come";
  if (!all_in(unknown_)) return "";
  std::map<std::string, std::vector<int>> ranks_by_reason;
  for (const int rank : ranks) ranks_by_reason[unknown_.at(rank)].push_back(rank);
  std::vector<std::string> reasons;
  for (const auto& [reason, of] : ranks_by_reason) reasons.push_back(describe_ranks(of) + " " + reason);
  return fmt::format("{}, so it is not known whether {} came", fmt::join(reasons, " and "),
                     ranks.size() == 1 ? "it" : "they");
}

// Describes a call that some ranks made while others have ended. Either the ended ranks left out the call, or the
// callers made one call too many; the record does not tell which. The smaller side comes first, because most programs
// are right on most ranks. Describes only the first such call, because further ones usually follow from it.
std::string Standstill::describe_missing(const std::vector<comm::WaitEdge>& on_ended) const {
  const std::string& call = on_ended.front().call;
  std::set<int> missing;
  std::map<int, std::string> waiting;  // each waiting rank with its place
  for (const WaitEdge& edge : on_ended) {
    if (edge.call != call) continue;
    missing.insert(edge.to);
    waiting.try_emplace(edge.from, edge.where);
  }
  const std::vector<int> ranks(missing.begin(), missing.end());
  if (const auto why = absent_for_good(ranks); !why.empty()) return fmt::format("{}: {}", call, why);
  const auto* const what = others_ == OtherRanks::ended ? "ended and will never come" : "not come";
  if (waiting.size() < missing.size()) {
    std::vector<int> callers;
    for (const auto& [rank, place] : waiting) callers.push_back(rank);
    const std::string& where = waiting.begin()->second;
    return fmt::format("{} wait{} in {}{} for {}, which have {}", describe_ranks(callers),
                       callers.size() == 1 ? "s" : "", call, where.empty() ? "" : " at " + where, describe_ranks(ranks),
                       what);
  }
  return fmt::format("{}: {} {} {}", call, describe_ranks(ranks), ranks.size() == 1 ? "has" : "have", what);
}

void Standstill::add(const exec::BlockedFiber& fiber, std::string where) {
  // If nothing more is known about a poll, the poll itself is not worth mentioning.
  if (fiber.polls && fiber.waits_for.empty())
    polling_.insert_or_assign(fiber.rank, fiber.call == fiber.waits_on ? "" : fiber.call);
  add({fiber.rank, fiber.was_blocked ? fiber.call : std::string(), fiber.waits_for, std::move(where), fiber.any_rank});
}

// Inserts the call in order of rank, because calls of ranks that gave up are added after those of ranks that still
// wait.
void Standstill::add(comm::BlockedCall call) {
  ended_.erase(call.rank);
  const auto by_rank = [](int rank, const comm::BlockedCall& other) { return rank < other.rank; };
  calls_.insert(std::upper_bound(calls_.begin(), calls_.end(), call.rank, by_rank), std::move(call));
}

Standstill::Diagnosis Standstill::diagnose(std::optional<VirtualTime> until) const {
  const auto analysis = comm::analyse_waits(calls_, {ended_.begin(), ended_.end()});
  Diagnosis diagnosis;
  std::vector<std::string> causes;
  // Waits that can never end come first: waits for ended ranks, then a cycle. Dead ends come last: their waits depend
  // on no known rank, and merely did not end.
  if (!analysis.on_ended.empty()) causes.push_back(describe_missing(analysis.on_ended));
  if (!analysis.cycles.empty()) causes.push_back(ring(analysis.cycles.front()));
  for (const auto& cycle : analysis.cycles) {
    for (const auto& edge : cycle) diagnosis.wait_cycle.push_back(comm::to_string(edge));
  }
  for (const auto& edge : analysis.ring_of_any) diagnosis.wait_cycle.push_back(comm::to_string(edge));
  // A rank that waits for no other rank (a server thread in its loop, a rank that sleeps) is often all right. It counts
  // as a cause only if there is no other cause.
  std::vector<comm::DeadEnd> ends = analysis.dead_ends;
  const bool in_the_way = !causes.empty() || (!ends.empty() && !ends.front().held_up.empty());
  if (in_the_way) std::erase_if(ends, [](const comm::DeadEnd& end) { return end.held_up.empty(); });
  // Polling alone is no cause. It is a livelock only if all other waits lead to the rank that polls.
  diagnosis.polled = causes.empty() && !ends.empty() && polling_.contains(ends.front().rank);
  for (auto& text : texts_of_dead_ends(ends, polling_, until)) causes.push_back(std::move(text));
  diagnosis.headline = fmt::format("{}", fmt::join(causes, "; also, perhaps because of that, "));
  return diagnosis;
}

// The wait is not hopeless if it leads to a rank that might have gone on: a rank that was stopped or has failed (its
// next step is unknown), or a rank that waited for no other rank.
bool Standstill::is_hopeless(int rank, const std::vector<RankLine>& lines) const {
  std::map<int, std::vector<const comm::BlockedCall*>> calls;
  for (const auto& call : calls_) calls[call.rank].push_back(&call);
  std::set<int> seen{rank};
  std::vector<int> to_see{rank};
  while (!to_see.empty()) {
    const int next = to_see.back();
    to_see.pop_back();
    const auto state = lines[static_cast<std::size_t>(next)].state;
    if (ended_.contains(next) && state != RankOutcome::returned && state != RankOutcome::crashed) return false;
    for (const auto* const call : calls[next]) {
      // Other threads of `rank` itself do not matter.
      if (call->waits_for.empty() && next != rank) return false;
      for (const int to : call->waits_for) {
        if (seen.insert(to).second) to_see.push_back(to);
      }
    }
  }
  return true;
}

// Does not say which ranks wait for the named ranks, because those waits did not cause this timeout.
std::string Standstill::others_on_the_way(int rank, VirtualTime until) const {
  auto ends = comm::analyse_waits(calls_, {ended_.begin(), ended_.end()}).dead_ends;
  std::erase_if(ends, [rank](const comm::DeadEnd& end) { return end.rank == rank; });
  for (auto& end : ends) end.held_up.clear();
  std::string all;
  for (const auto& text : texts_of_dead_ends(ends, polling_, until)) all += "; " + text;
  return all;
}

namespace {

// For example " at ring.cpp:9 in step": where the receiver of the send receives something else. Empty if unknown.
std::string place_of_receive(const comm::PendingOperation& send, const std::vector<comm::PendingOperation>& pending,
                             const RankOutcomes& ends) {
  for (const auto& call : pending) {
    const bool is_of_receiver =
        std::find(send.waits_for.begin(), send.waits_for.end(), call.rank) != send.waits_for.end();
    if (!is_of_receiver || !call.call.starts_with("recv ")) continue;
    const auto where = ends.place_of(call);
    return where.empty() ? "" : " at " + where;
  }
  return "";
}

}  // namespace

// Ranks may wait in a collective because an earlier send or receive went astray. The wait-for graph does not show that,
// so the headline of any standstill also names an unmatched send, and begins with it.
std::string unmatched_send(const std::vector<comm::PendingOperation>& pending, const RankOutcomes& ends) {
  std::string text;
  int more = -1;
  for (const auto& call : pending) {
    // A buffered send has completed, so nobody waits in it, and only this text can show it.
    const bool unseen = call.is_send && call.record_id == comm::Event::kNotRecorded;
    if ((call.receiver.empty() && !unseen) || ++more > 0) continue;
    const auto where = ends.place_of(call);
    const auto send = fmt::format("rank {}'s {}{}{}; ", call.rank, call.call, where.empty() ? "" : " at ", where);
    text = call.receiver.empty()
               ? "no rank receives " + send
               : call.receiver + place_of_receive(call, pending, ends) + ", but the send to it is " + send;
  }
  if (more > 0) text += fmt::format("{} more send{} not received; ", more, more == 1 ? " is" : "s are");
  return text;
}

}  // namespace rehearse::sim
