// SPDX-License-Identifier: BSD-3-Clause
#include "report/diagnosis/dead_ends.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rehearse_internal/formatting/rank_list.h>
#include <rehearse_internal/sim/format_time.h>

namespace rehearse::sim {
namespace {

constexpr std::size_t kCausesShown = 2;  // different causes; the ranks' lines show all
constexpr std::size_t kCallsShown = 2;   // calls of ranks that wait

using comm::WaitEdge;

// Ranks in the same call at the same place form one cause.
struct Cause {
  std::vector<int> ranks;
  std::string call, where;
  std::optional<std::string> polled;  // for ranks that poll: the call that polls; empty: unknown
  std::vector<WaitEdge> held_up;
};

// Writes the texts in the present tense (they wait forever), or in the past tense if a timeout ended the wait.
class DeadEnds {
 public:
  DeadEnds(const std::map<int, std::string>& polling, std::optional<VirtualTime> until)
      : polling_(polling), until_(until) {}

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
        const auto polled = polling_.find(end.rank);
        cause = causes.insert(cause, {{}, end.call, end.where, {}, {}});
        if (polled != polling_.end()) cause->polled = polled->second;
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
      doing += cause.polled ? "polling" + in(*cause.polled) : cause.call.empty() ? "running" : "in " + cause.call;
    } else {
      const auto verb = [one](const char* of_one, const char* of_many) { return one ? of_one : of_many; };
      if (cause.polled) {
        doing = verb("polls forever", "poll forever") + in(*cause.polled);
      } else if (cause.call.empty()) {
        doing = verb("goes on forever", "go on forever");
      } else {
        doing = verb("waits forever in ", "wait forever in ") + cause.call;
      }
    }
    if (!cause.where.empty()) doing += " at " + cause.where;
    return describe_ranks(cause.ranks) + " " + doing;
  }

  static std::string in(const std::string& call) { return call.empty() ? "" : " in " + call; }

  // For example "ranks 0-1 wait for it in barrier #2".
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
    if (until_)
      return fmt::format("{} waited {} until the timeout at {}", describe_ranks(ranks), where, format_time(*until_));
    return fmt::format("{} wait{} {}", describe_ranks(ranks), ranks.size() == 1 ? "s" : "", where);
  }

  const std::map<int, std::string>& polling_;
  const std::optional<VirtualTime> until_;
};

}  // namespace

std::vector<std::string> texts_of_dead_ends(const std::vector<comm::DeadEnd>& ends,
                                            const std::map<int, std::string>& polling,
                                            std::optional<VirtualTime> until) {
  return DeadEnds(polling, until).texts(ends);
}

}  // namespace rehearse::sim
