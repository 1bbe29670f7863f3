// SPDX-License-Identifier: BSD-3-Clause
#include "report/diagnosis/standstill.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rehearse_internal/comm/title.h>
#include <rehearse_internal/formatting/rank_list.h>
#include <rehearse_internal/sim/format_time.h>

#include "report/diagnosis/headline_parts.h"
#include "report/ranks/rank_outcomes.h"
#include "report/writers/culprits.h"

namespace rehearse::sim {
namespace {

constexpr std::size_t kRingShown = 8;  // ranks in the headline; all edges follow below it
constexpr std::size_t kEdgesShown = 4;
constexpr std::size_t kCausesShown = 2;  // different causes; the ranks' lines show all

using comm::WaitEdge;

CauseText ring(const std::vector<WaitEdge>& cycle) {
  std::vector<std::string> ranks, calls;
  CauseText told;
  for (const WaitEdge& edge : cycle) {
    told.causes.push_back({Cause::Kind::ring, {edge.from}, edge.call, edge.where});
    if (ranks.size() < kRingShown) ranks.push_back(std::to_string(edge.from));
    if (calls.size() < kEdgesShown) calls.push_back(fmt::format("rank {} in {}", edge.from, edge.call));
  }
  if (ranks.size() < cycle.size()) ranks.emplace_back("...");
  if (calls.size() < cycle.size()) calls.emplace_back("...");
  told.text = fmt::format("ranks {} -> {} wait for each other: {}", fmt::join(ranks, " -> "), cycle.front().from,
                          fmt::join(calls, ", "));
  return told;
}

// Ranks in the same call at the same place form one cause.
struct CommonEnd {
  std::vector<int> ranks;
  std::string call;
  Place where;
  exec::Wait::Kind kind = exec::Wait::Kind::other;
  bool polls = false;  // in the call, which is empty if it is unknown
  std::vector<WaitEdge> held_up;
};

// Writes the texts in the present tense if the ranks wait forever, or in the past tense if a timeout ended the wait.
class DeadEnds {
 public:
  DeadEnds(const std::map<int, exec::Wait>& polling, std::optional<VirtualTime> until)
      : polling_(polling), until_(until) {}

  std::vector<CauseText> texts(const std::vector<comm::DeadEnd>& ends) const {
    const auto causes = causes_of(ends);
    std::vector<CauseText> texts;
    for (const CommonEnd& cause : causes) {
      if (texts.size() == kCausesShown) break;
      texts.push_back({text(cause), {fact(cause)}});
      if (texts.size() > 1 || cause.held_up.empty()) continue;
      texts.back().text += "; " + waits_text(cause.held_up, cause.ranks.size(), until_.has_value());
      if (until_) texts.back().text += fmt::format(" until the timeout at {}", format_time(*until_));
    }
    if (texts.size() < causes.size())
      texts.push_back({fmt::format("ranks in {} more places", causes.size() - texts.size())});
    return texts;
  }

 private:
  std::vector<CommonEnd> causes_of(const std::vector<comm::DeadEnd>& ends) const {
    std::vector<CommonEnd> causes;
    for (const auto& end : ends) {
      const auto polled = polling_.find(end.rank);
      const bool polls = polled != polling_.end();
      const CommonEnd own{
          {}, polls ? polled->second.call : end.call, end.where, polls ? polled->second.kind : end.kind, polls, {}};
      const auto same = [&](const CommonEnd& other) {
        return other.call == own.call && other.where == own.where && other.polls == own.polls;
      };
      auto cause = std::ranges::find_if(causes, same);
      if (cause == causes.end()) cause = causes.insert(cause, own);
      cause->ranks.push_back(end.rank);
      cause->held_up.insert(cause->held_up.end(), end.held_up.begin(), end.held_up.end());
    }
    for (CommonEnd& cause : causes) std::ranges::sort(cause.ranks);
    return causes;
  }

  static Cause fact(const CommonEnd& cause) {
    std::set<int> waiting;
    for (const WaitEdge& edge : cause.held_up) waiting.insert(edge.from);
    return {cause.polls ? Cause::Kind::polls : Cause::Kind::stuck,
            cause.ranks,
            cause.call,
            cause.where,
            {waiting.begin(), waiting.end()}};
  }

  std::string text(const CommonEnd& cause) const {
    const bool one = cause.ranks.size() == 1;
    std::string doing;
    if (until_) {
      doing = one ? "was still " : "were still ";
      doing += cause.polls ? "polling" + in(cause.call) : cause.call.empty() ? "running" : "in " + cause.call;
    } else {
      const auto verb = [one](const char* of_one, const char* of_many) { return one ? of_one : of_many; };
      if (cause.polls) {
        doing = verb("polls forever", "poll forever") + in(cause.call);
      } else if (cause.call.empty()) {
        doing = verb("goes on forever", "go on forever");
      } else {
        doing = verb("waits forever in ", "wait forever in ") + cause.call;
      }
    }
    if (cause.kind == exec::Wait::Kind::key) doing += until_ ? ", which was not set," : ", which is not set,";
    doing += cause.where.at();
    if (doing.ends_with(',')) doing.pop_back();
    return describe_ranks(cause.ranks) + " " + doing;
  }

  static std::string in(const std::string& call) { return call.empty() ? "" : " in " + call; }

  const std::map<int, exec::Wait>& polling_;
  const std::optional<VirtualTime> until_;
};

// One clause for each of the first two causes, in the order of `ends`. If there are more causes, one more text says how
// many. For example "rank 2 waits forever in store wait for key "k", which is not set, at train.cpp:41; ranks 0-1 wait
// for it in barrier #2 on group "world"". `polling`: ranks that poll, and the call with which each polls (empty:
// unknown). `until`: the time at which a timeout ended the waits ("rank 2 was still in a sleep at ..."); nothing: the
// waits last forever.
std::vector<CauseText> texts_of_dead_ends(const std::vector<comm::DeadEnd>& ends,
                                          const std::map<int, exec::Wait>& polling, std::optional<VirtualTime> until) {
  return DeadEnds(polling, until).texts(ends);
}

// Only a simulation has a deadlock at a lock or an initialisation that ranks share: in a real job, each rank is a
// process. Says so if the headline is about such a wait; otherwise empty.
std::string shared_by_ranks(const comm::WaitAnalysis& waits) {
  const auto is_shared = [](const WaitEdge& edge) {
    return edge.to != edge.from && (edge.kind == exec::Wait::Kind::lock || edge.kind == exec::Wait::Kind::once);
  };
  const auto text_of = [&](const std::vector<WaitEdge>& edges) -> std::string {
    const auto edge = std::ranges::find_if(edges, is_shared);
    if (edge == edges.end()) return "";
    const auto* const format = edge->kind == exec::Wait::Kind::lock
                                   ? "; ranks share this {} only because a simulation runs them in one process: with "
                                     "a process for each rank, this deadlock does not occur"
                                   : "; {} happens once for all ranks of a simulation, but once in each process of a "
                                     "real job, where this deadlock does not occur";
    return fmt::format(fmt::runtime(format), edge->object);
  };
  auto text = text_of(waits.on_ended);
  if (text.empty() && !waits.cycles.empty()) text = text_of(waits.cycles.front());
  if (text.empty() && !waits.dead_ends.empty()) text = text_of(waits.dead_ends.front().held_up);
  return text;
}

}  // namespace

Standstill::Standstill(int ranks, std::map<int, std::string> crashed, OtherRanks others, std::map<int, Unknown> unknown)
    : crashed_(std::move(crashed)), others_(others), unknown_(std::move(unknown)) {
  for (int rank = 0; rank < ranks; ++rank) ended_.insert(ended_.end(), rank);
}

// Says why none of these ranks came: "rank 3 crashed and will never come". Or says why nobody knows whether any of them
// came. Empty if neither applies to all of them.
CauseText Standstill::absent_for_good(const std::vector<int>& ranks) const {
  const auto all_in = [&](const auto& known) {
    return std::ranges::all_of(ranks, [&](int rank) { return known.contains(rank); });
  };
  if (all_in(crashed_))
    return {describe_ranks(ranks) + " crashed and will never come", {{Cause::Kind::crashed, ranks}}};
  if (!all_in(unknown_)) return {};
  std::map<Unknown, std::vector<int>> ranks_by_reason;
  for (const int rank : ranks) ranks_by_reason[unknown_.at(rank)].push_back(rank);
  std::vector<std::string> reasons;
  for (const auto& [reason, of] : ranks_by_reason) {
    const auto* const what = reason == Unknown::no_dump ? " left no dump" : " had dropped its calls of that group";
    reasons.push_back(describe_ranks(of) + what);
  }
  return {fmt::format("{}, so it is not known whether {} came", fmt::join(reasons, " and "),
                      ranks.size() == 1 ? "it" : "they")};
}

// Describes a call that some ranks made while others have ended. Either the ended ranks left out the call, or the
// callers made one call too many; the record does not tell which. The smaller side comes first, because most programs
// are right on most ranks. Describes only the first such call, because further ones usually follow from it.
CauseText Standstill::describe_missing(const std::vector<comm::WaitEdge>& on_ended) const {
  std::string call = on_ended.front().call;
  const auto kind_of_call = comm::without_own_number(call);
  std::set<int> missing;
  std::map<int, Place> waiting;  // each waiting rank with its place
  for (const WaitEdge& edge : on_ended) {
    if (comm::without_own_number(edge.call) != kind_of_call) continue;
    if (edge.call != call) call = kind_of_call;
    missing.insert(edge.to);
    waiting.try_emplace(edge.from, edge.where);
  }
  std::vector<int> callers;
  for (const auto& [rank, place] : waiting) callers.push_back(rank);
  const auto& where = waiting.begin()->second;
  const std::vector<int> ranks(missing.begin(), missing.end());
  if (auto absent = absent_for_good(ranks); !absent.text.empty()) {
    for (Cause& cause : absent.causes) cause = {cause.kind, ranks, call, where, callers};
    absent.text.insert(0, call + ": ");
    return absent;
  }
  const Cause ended{Cause::Kind::ended, ranks, call, where, callers};
  const auto* const what = others_ == OtherRanks::ended ? "ended and will never come" : "not come";
  if (waiting.size() < missing.size()) {
    return {fmt::format("{} wait{} in {}{} for {}, which have {}", describe_ranks(callers),
                        callers.size() == 1 ? "s" : "", call, where.at(), describe_ranks(ranks), what),
            {ended}};
  }
  return {fmt::format("{}: {} {} {}", call, describe_ranks(ranks), ranks.size() == 1 ? "has" : "have", what), {ended}};
}

void Standstill::add(const exec::BlockedFiber& fiber, Place where) {
  // If nothing more is known about a poll, the poll itself is not worth mentioning.
  if (fiber.polls && fiber.waits_for.empty()) {
    exec::Wait& polled = polling_[fiber.rank] = fiber;
    if (polled.call == polled.waits_on) polled = {};
  }
  add({fiber.rank, fiber.was_blocked ? fiber.call : std::string(), fiber.waits_for, std::move(where), fiber.any_rank,
       fiber.kind, fiber.object});
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
  std::vector<CauseText> causes;
  // Waits that can never end come first: waits for ended ranks, then a cycle. Dead ends come last: their waits depend
  // on no known rank, and merely did not end.
  if (!analysis.on_ended.empty()) causes.push_back(describe_missing(analysis.on_ended));
  if (!analysis.cycles.empty()) causes.push_back(ring(analysis.cycles.front()));
  for (const auto& cycle : analysis.cycles) {
    for (const auto& edge : cycle) diagnosis.wait_cycle.push_back(comm::to_string(edge));
  }
  // A rank that crashed might have ended such a wait, so the others need not block each other.
  if (crashed_.empty()) {
    for (const auto& edge : analysis.ring_of_any) diagnosis.wait_cycle.push_back(comm::to_string(edge));
  }
  // A rank that waits for no other rank (a server thread in its loop, a rank that sleeps) is often all right. It counts
  // as a cause only if there is no other cause.
  std::vector<comm::DeadEnd> ends = analysis.dead_ends;
  const bool in_the_way = !causes.empty() || (!ends.empty() && !ends.front().held_up.empty());
  if (in_the_way) std::erase_if(ends, [](const comm::DeadEnd& end) { return end.held_up.empty(); });
  // Polling alone is no cause. It is a livelock only if all other waits lead to the rank that polls.
  diagnosis.polled = causes.empty() && !ends.empty() && polling_.contains(ends.front().rank);
  const std::size_t sure = causes.size();
  for (auto& text : texts_of_dead_ends(ends, polling_, until)) causes.push_back(std::move(text));
  for (std::size_t i = 0; i < causes.size(); ++i) {
    // Nobody knows which of several dead ends came first.
    if (i > 0) diagnosis.headline.text += i > sure || sure == 0 ? "; also, " : "; also, perhaps because of that, ";
    diagnosis.headline += causes[i];
  }
  diagnosis.headline.text += shared_by_ranks(analysis);
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
CauseText Standstill::others_on_the_way(int rank, VirtualTime until) const {
  auto ends = comm::analyse_waits(calls_, {ended_.begin(), ended_.end()}).dead_ends;
  std::erase_if(ends, [rank](const comm::DeadEnd& end) { return end.rank == rank; });
  for (auto& end : ends) end.held_up.clear();
  CauseText all;
  for (auto& told : texts_of_dead_ends(ends, polling_, until)) {
    told.text.insert(0, "; ");
    all += told;
  }
  return all;
}

namespace {

// The call in which the receiver of the send receives something else; null: it is unknown.
const comm::PendingOperation* other_receive(const comm::PendingOperation& send,
                                            const std::vector<comm::PendingOperation>& pending) {
  const auto receive = std::ranges::find_if(pending, [&](const comm::PendingOperation& call) {
    const auto& receivers = send.waits_for;
    return std::ranges::find(receivers, call.rank) != receivers.end() && call.call.starts_with("recv ");
  });
  return receive == pending.end() ? nullptr : &*receive;
}

// "with tag 7 on group ..."; empty for tag 0.
std::string_view tag_in(std::string_view call) { return call.substr(std::min(call.find("with tag "), call.size())); }

// Whether `from` waits for `to`, or for a rank that waits for it, and so on.
bool leads_to(int from, int to, const RankOutcomes& ends) {
  std::set<int> seen{from};
  std::vector<int> to_see{from};
  while (!to_see.empty()) {
    const RankLine& line = ends.line_of(to_see.back());
    to_see.pop_back();
    for (const int next : awaited_by(line)) {
      if (next == to) return true;
      if (seen.insert(next).second) to_see.push_back(next);
    }
  }
  return false;
}

// True if the receiver merely waits for another sender, which crashed, or which something else than the receiver holds
// up. Then it might have received this send next.
bool may_come_next(const comm::PendingOperation* receive, const RankOutcomes& ends) {
  return receive != nullptr && std::ranges::any_of(receive->waits_for, [&](int rank) {
           const RankLine& line = ends.line_of(rank);
           if (!awaited_by(line).empty()) return !leads_to(rank, receive->rank, ends);
           return line.state == RankOutcome::crashed || line.state == RankOutcome::stopped ||
                  line.state == RankOutcome::blocked;
         });
}

}  // namespace

// Ranks may wait in a collective because an earlier send or receive went astray. The wait-for graph does not show that,
// so the headline of any standstill also names an unmatched send, and begins with it.
CauseText unmatched_send(const std::vector<comm::PendingOperation>& pending, const RankOutcomes& ends) {
  CauseText told;
  int more = -1;
  for (const auto& call : pending) {
    // A buffered send has completed, so nobody waits in it, and only this text can show it.
    const bool unseen = call.is_send && call.record_id == comm::Event::kNotRecorded;
    const auto* const receive = other_receive(call, pending);
    if ((call.receiver.empty() && !unseen) || (!unseen && may_come_next(receive, ends)) || ++more > 0) continue;
    const auto place = ends.place_of(call);
    const auto send = fmt::format("rank {}'s {}{}; ", call.rank, call.call, place.at());
    told = {call.receiver.empty() ? "no rank receives " + send
                                  : call.receiver + (receive == nullptr ? "" : ends.place_of(*receive).at()) +
                                        ", but the send to it is " + send,
            {{Cause::Kind::unmatched, {call.rank}, call.call, place}}};
    if (!call.receiver.empty()) told.causes.front().waiting = call.waits_for;
  }
  if (more > 0) told.text += fmt::format("{} more send{} not received; ", more, more == 1 ? " is" : "s are");
  return told;
}

CauseText send_awaited_elsewhere(const std::vector<comm::PendingOperation>& pending, const RankOutcomes& ends) {
  for (const auto& send : pending) {
    if (!send.is_send || !send.receiver.empty() || send.record_id == comm::Event::kNotRecorded) continue;
    const auto awaits_it = [&](const comm::PendingOperation& call) {
      return call.waits_for == std::vector{send.rank} && call.group == send.group && call.call.starts_with("recv ") &&
             tag_in(call.call) == tag_in(send.call);
    };
    const auto elsewhere = std::ranges::find_if(pending, awaits_it);
    if (elsewhere == pending.end() || other_receive(send, pending) != nullptr) continue;
    // A rank that is itself in a send may receive next.
    const auto sends = [&](int rank) { return ends.line_of(rank).doing.starts_with("send "); };
    if (std::ranges::all_of(send.waits_for, sends)) continue;
    const auto place = ends.place_of(send);
    return {fmt::format("; rank {} receives from rank {}{}, while rank {} sends to {}{}", elsewhere->rank, send.rank,
                        ends.place_of(*elsewhere).at(), send.rank, describe_ranks(send.waits_for), place.at()),
            {{Cause::Kind::unmatched, {send.rank}, send.call, place, {elsewhere->rank}}}};
  }
  return {};
}

}  // namespace rehearse::sim
