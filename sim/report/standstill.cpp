// SPDX-License-Identifier: BSD-3-Clause
#include "report/standstill.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rehearse/exec/rank_list.h>
#include <rehearse/sim/format_time.h>

namespace rehearse::sim {
namespace {

constexpr std::size_t kCausesShown = 2;  // dead ends that differ; the ranks' lines have all
constexpr std::size_t kCallsShown = 2;   // of ranks that wait
constexpr std::size_t kRingShown = 8;    // ranks; all edges stand below
constexpr std::size_t kEdgesShown = 4;

using comm::WaitEdge;

// The fewer ranks are the suspects: those that have ended without a call, or those that made a call too many.
std::string gone(const std::vector<WaitEdge>& on_ended) {
  const std::string& call = on_ended.front().call;
  std::set<int> missing;
  std::map<int, std::string> waiting;  // and where
  for (const WaitEdge& edge : on_ended) {
    if (edge.call != call) continue;
    missing.insert(edge.to);
    waiting.try_emplace(edge.from, edge.where);
  }
  const std::vector<int> ranks(missing.begin(), missing.end());
  if (waiting.size() < missing.size()) {
    std::vector<int> callers;
    for (const auto& [rank, place] : waiting) callers.push_back(rank);
    const std::string& where = waiting.begin()->second;
    return fmt::format("{} wait{} in {}{} for {}, which have ended and will never come",
                       describe_ranks(callers), callers.size() == 1 ? "s" : "", call,
                       where.empty() ? "" : " at " + where, describe_ranks(ranks));
  }
  return fmt::format("{}: {} {} ended and will never come", call, describe_ranks(ranks),
                     ranks.size() == 1 ? "has" : "have");
}

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

// Ranks that stand in the same place for the same reason are one cause.
struct Cause {
  std::vector<int> ranks;
  std::string call, where;
  bool polls = false;
  std::vector<WaitEdge> held_up;
};

// The clauses about dead ends, in the present for ever or in the past until a timeout.
class DeadEnds {
 public:
  DeadEnds(const std::set<int>& polling, std::optional<VirtualTime> until) : polling_(polling), until_(until) {}

  std::vector<std::string> texts(const std::vector<comm::DeadEnd>& ends) const {
    const auto causes = causes_of(ends);
    std::vector<std::string> texts;
    for (const Cause& cause : causes) {
      if (texts.size() == kCausesShown) break;
      texts.push_back(text(cause));
      if (texts.size() == 1 && !cause.held_up.empty()) texts.back() += "; " + held_up(cause);
    }
    if (texts.size() < causes.size()) texts.push_back(fmt::format("and {} more", causes.size() - texts.size()));
    return texts;
  }

 private:
  std::vector<Cause> causes_of(const std::vector<comm::DeadEnd>& ends) const {
    std::vector<Cause> causes;
    for (const auto& end : ends) {
      const auto same = [&](const Cause& other) { return other.call == end.call && other.where == end.where; };
      auto cause = std::find_if(causes.begin(), causes.end(), same);
      if (cause == causes.end()) {
        cause = causes.insert(cause, {{}, end.call, end.where, polling_.contains(end.rank), {}});
      }
      cause->ranks.push_back(end.rank);
      cause->held_up.insert(cause->held_up.end(), end.held_up.begin(), end.held_up.end());
    }
    for (Cause& cause : causes) std::sort(cause.ranks.begin(), cause.ranks.end());
    return causes;
  }

  std::string text(const Cause& cause) const {
    const bool one = cause.ranks.size() == 1;
    std::string doing;
    if (until_) {
      doing = one ? "was still " : "were still ";
      doing += cause.polls ? "polling" : cause.call.empty() ? "on the way" : "in " + cause.call;
    } else {
      const auto verb = [one](const char* of_one, const char* of_many) { return one ? of_one : of_many; };
      if (cause.polls) {
        doing = verb("polls for ever", "poll for ever");
      } else if (cause.call.empty()) {
        doing = verb("goes on for ever", "go on for ever");
      } else {
        doing = verb("waits for ever in ", "wait for ever in ") + cause.call;
      }
    }
    if (!cause.where.empty()) doing += " at " + cause.where;
    return describe_ranks(cause.ranks) + " " + doing;
  }

  // "ranks 0-1 wait for it in barrier #2".
  std::string held_up(const Cause& cause) const {
    std::set<int> waiting;
    std::vector<std::string> calls;
    for (const WaitEdge& edge : cause.held_up) {
      waiting.insert(edge.from);
      if (std::find(calls.begin(), calls.end(), edge.call) == calls.end()) calls.push_back(edge.call);
    }
    if (calls.size() > kCallsShown) {
      calls.resize(kCallsShown);
      calls.emplace_back("others");
    }
    const std::vector<int> ranks(waiting.begin(), waiting.end());
    const auto* const whom = cause.ranks.size() == 1 ? "it" : "them";
    const auto where = fmt::format("for {} in {}", whom, fmt::join(calls, " and "));
    if (until_) return fmt::format("{} waited {} until the timeout at {}", describe_ranks(ranks), where, format_time(*until_));
    return fmt::format("{} wait{} {}", describe_ranks(ranks), ranks.size() == 1 ? "s" : "", where);
  }

  const std::set<int>& polling_;
  const std::optional<VirtualTime> until_;
};

}  // namespace

Standstill::Standstill(int ranks) {
  for (int rank = 0; rank < ranks; ++rank) ended_.insert(ended_.end(), rank);
}

void Standstill::add(const exec::BlockedFiber& fiber, std::string where) {
  if (fiber.polls && fiber.waits_for.empty()) polling_.insert(fiber.rank);
  add({fiber.rank, fiber.was_blocked ? fiber.call : std::string(), fiber.waits_for, std::move(where)});
}

void Standstill::add(comm::BlockedCall call) {
  ended_.erase(call.rank);
  calls_.push_back(std::move(call));
}

Standstill::Story Standstill::tell(std::optional<VirtualTime> until) const {
  const auto analysis = comm::analyse_waits(calls_, {ended_.begin(), ended_.end()});
  Story story;
  std::vector<std::string> causes;
  if (!analysis.on_ended.empty()) causes.push_back(gone(analysis.on_ended));
  if (!analysis.cycles.empty()) causes.push_back(ring(analysis.cycles.front()));
  for (const auto& cycle : analysis.cycles) {
    for (const auto& edge : cycle) story.wait_cycle.push_back(comm::to_string(edge));
  }
  // A wait that holds nobody up is what led here only when nothing else is.
  std::vector<comm::DeadEnd> ends = analysis.dead_ends;
  const bool in_the_way = !causes.empty() || (!ends.empty() && !ends.front().held_up.empty());
  if (in_the_way) std::erase_if(ends, [](const comm::DeadEnd& end) { return end.held_up.empty(); });
  story.polled = causes.empty() && !ends.empty() && polling_.contains(ends.front().rank);
  for (auto& text : DeadEnds(polling_, until).texts(ends)) causes.push_back(std::move(text));
  story.headline = fmt::format("{}", fmt::join(causes, "; "));
  return story;
}

bool Standstill::is_hopeless(int rank, const std::vector<RankLine>& lines) const {
  std::map<int, std::vector<const comm::BlockedCall*>> calls;
  for (const auto& call : calls_) calls[call.rank].push_back(&call);
  std::set<int> seen{rank};
  std::vector<int> to_see{rank};
  while (!to_see.empty()) {
    const int next = to_see.back();
    to_see.pop_back();
    if (ended_.contains(next) && lines[static_cast<std::size_t>(next)].state != "returned") return false;
    for (const auto* const call : calls[next]) {
      // Something of its own, from which it may come back; a thread of the rank itself does not matter.
      if (call->waits_for.empty() && next != rank) return false;
      for (const int to : call->waits_for) {
        if (seen.insert(to).second) to_see.push_back(to);
      }
    }
  }
  return true;
}

std::string Standstill::others_on_the_way(int rank, VirtualTime until) const {
  auto ends = comm::analyse_waits(calls_, {ended_.begin(), ended_.end()}).dead_ends;
  std::erase_if(ends, [rank](const comm::DeadEnd& end) { return end.rank == rank; });
  for (auto& end : ends) end.held_up.clear();
  std::string all;
  for (const auto& text : DeadEnds(polling_, until).texts(ends)) all += "; " + text;
  return all;
}

std::string unmatched_send(const std::vector<comm::PendingOperation>& pending) {
  std::string text;
  int more = -1;
  for (const auto& call : pending) {
    if (call.receiver.empty() || ++more > 0) continue;
    text = fmt::format("; unmatched: {} of rank {}, while {}", call.call, call.rank, call.receiver);
  }
  if (more > 0) text += fmt::format(", and {} more", more);
  return text;
}

}  // namespace rehearse::sim
