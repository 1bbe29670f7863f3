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
struct CommonEnd {
  std::vector<int> ranks;
  std::string call, where;
  std::optional<std::string> polled;  // the call that polls; empty text: unknown; nothing: no polling
  std::vector<WaitEdge> held_up;
};

// Writes the texts in the present tense if the ranks wait forever, or in the past tense if a timeout ended the wait.
class DeadEnds {
 public:
  DeadEnds(const std::map<int, std::string>& polling, std::optional<VirtualTime> until)
      : polling_(polling), until_(until) {}

  std::vector<std::string> texts(const std::vector<comm::DeadEnd>& ends) const {
    const auto causes = causes_of(ends);
    std::vector<std::string> texts;
    for (const CommonEnd& cause : causes) {
      if (texts.size() == kCausesShown) break;
      texts.push_back(text(cause));
      if (texts.size() == 1 && !cause.held_up.empty()) texts.back() += "; " + held_up(cause);
    }
    if (texts.size() < causes.size())
      texts.push_back(fmt::format("ranks in {} more places", causes.size() - texts.size()));
    return texts;
  }

 private:
  std::vector<CommonEnd> causes_of(const std::vector<comm::DeadEnd>& ends) const {
    std::vector<CommonEnd> causes;
    for (const auto& end : ends) {
      const auto same = [&](const CommonEnd& other) { return other.call == end.call && other.where == end.where; };
      auto cause = std::find_if(causes.begin(), causes.end(), same);
      if (cause == causes.end()) {
        const auto polled = polling_.find(end.rank);
        cause = causes.insert(cause, {{}, end.call, end.where, {}, {}});
        if (polled != polling_.end()) cause->polled = polled->second;
      }
      cause->ranks.push_back(end.rank);
      cause->held_up.insert(cause->held_up.end(), end.held_up.begin(), end.held_up.end());
    }
    for (CommonEnd& cause : causes) std::sort(cause.ranks.begin(), cause.ranks.end());
    return causes;
  }

  std::string text(const CommonEnd& cause) const {
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
    if (is_of_key(cause)) doing += until_ ? ", which was not set," : ", which is not set,";
    if (!cause.where.empty()) doing += " at " + cause.where;
    if (doing.ends_with(',')) doing.pop_back();
    return describe_ranks(cause.ranks) + " " + doing;
  }

  // True for a wait or a poll that ends when some rank sets the key.
  static bool is_of_key(const CommonEnd& cause) {
    const auto& call = cause.polled ? *cause.polled : cause.call;
    return call.starts_with("store wait for key ") || call.starts_with("store check of key ");
  }

  static std::string in(const std::string& call) { return call.empty() ? "" : " in " + call; }

  // For example "ranks 0-1 wait for it in barrier #2 on group "world", rank 3 in recv #1 from rank 2 on group "world"".
  std::string held_up(const CommonEnd& cause) const {
    std::vector<std::pair<std::string, std::set<int>>> calls;
    for (const WaitEdge& edge : cause.held_up) {
      auto call = std::find_if(calls.begin(), calls.end(), [&](const auto& known) { return known.first == edge.call; });
      if (call == calls.end()) call = calls.insert(call, {edge.call, {}});
      call->second.insert(edge.from);
    }
    std::vector<std::string> texts;
    for (const auto& [call, waiting] : calls) {
      if (texts.size() == kCallsShown) break;
      const std::vector<int> ranks(waiting.begin(), waiting.end());
      const auto* const verb = until_ ? "waited" : ranks.size() == 1 ? "waits" : "wait";
      const auto whom = texts.empty() ? fmt::format(" {} for {}", verb, cause.ranks.size() == 1 ? "it" : "them") : "";
      texts.push_back(fmt::format("{}{} in {}", describe_ranks(ranks), whom, call));
    }
    if (texts.size() < calls.size()) texts.emplace_back("others in other calls");
    const auto until = until_ ? fmt::format(" until the timeout at {}", format_time(*until_)) : "";
    return fmt::format("{}{}", fmt::join(texts, ", "), until);
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
