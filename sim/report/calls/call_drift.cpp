// SPDX-License-Identifier: BSD-3-Clause
#include "report/calls/call_drift.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <rehearse_internal/comm/operation.h>
#include <rehearse_internal/formatting/rank_list.h>

#include "report/calls/call_places.h"

namespace rehearse::sim {
namespace {

constexpr std::size_t kCallsApartMost = 8;
constexpr std::size_t kAlikeLeast = 2;

using comm::Event;

// Identifies a call by the lines that led to it and by its operation.
struct OrderedCall {
  const Event* event = nullptr;
  const Places::Lines* lines = nullptr;
  c10d::OpType type = c10d::OpType::UNKNOWN;

  bool operator==(const OrderedCall& other) const { return type == other.type && *lines == *other.lines; }
};
using Calls = std::vector<OrderedCall>;  // one rank's calls, in order

// From index `from` on, `fewer` has the calls that `more` has `apart` places later.
struct Drift {
  std::size_t from = 0;
  std::size_t apart = 0;
};

// Finds out whether `fewer`, after a common beginning, skipped calls of `more`.
std::optional<Drift> left_out(const Calls& fewer, const Calls& more) {
  const auto length = std::min(fewer.size(), more.size());
  const auto from = static_cast<std::size_t>(
      std::mismatch(fewer.begin(), fewer.begin() + static_cast<std::ptrdiff_t>(length), more.begin()).first -
      fewer.begin());
  if (from == length) return std::nullopt;
  for (std::size_t apart = 1; apart <= kCallsApartMost && from + apart < more.size(); ++apart) {
    const auto rest = std::min(fewer.size() - from, more.size() - from - apart);
    const auto begin = fewer.begin() + static_cast<std::ptrdiff_t>(from);
    const auto other = more.begin() + static_cast<std::ptrdiff_t>(from + apart);
    if (!std::equal(begin, begin + static_cast<std::ptrdiff_t>(rest), other)) continue;
    // A single equal call may be chance. A call that `fewer` makes later was not left out, but made in another order.
    const bool is_swapped = std::any_of(more.begin() + static_cast<std::ptrdiff_t>(from), other, [&](const auto& call) {
      return std::find(begin, fewer.end(), call) != fewer.end() && std::find(other, more.end(), call) == more.end();
    });
    const bool ends_alike = fewer.size() - from == more.size() - from - apart;
    if ((rest >= kAlikeLeast || ends_alike) && !is_swapped) return Drift{from, apart};
  }
  return std::nullopt;
}

// Ranks that made the same calls, except that some got further than others.
struct AlikeCalls {
  std::vector<int> ranks;
  Calls calls;  // calls of the rank that got furthest
};

std::vector<AlikeCalls> sides_of(const std::map<int, Calls>& by_rank) {
  std::vector<AlikeCalls> sides;
  const auto goes_with = [](const Calls& a, const Calls& b) {
    return std::equal(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(std::min(a.size(), b.size())), b.begin());
  };
  for (const auto& [rank, calls] : by_rank) {
    const auto same = std::ranges::find_if(
        sides, [&calls = calls, &goes_with](const AlikeCalls& side) { return goes_with(side.calls, calls); });
    if (same == sides.end()) {
      sides.push_back({{rank}, calls});
      continue;
    }
    same->ranks.push_back(rank);
    if (calls.size() > same->calls.size()) same->calls = calls;
  }
  std::ranges::stable_sort(sides,
                           [](const AlikeCalls& a, const AlikeCalls& b) { return a.ranks.size() > b.ranks.size(); });
  return sides;
}

class DriftText {
 public:
  DriftText(const comm::EventLog& log, const Places& places, const std::string& group)
      : log_(log), places_(places), group_(group) {}

  // `most` has at least as many ranks as `others`. Nothing if no side skipped calls of the other.
  std::optional<CallDrift> of(const AlikeCalls& most, const AlikeCalls& others) const {
    const bool tie = most.ranks.size() == others.ranks.size();
    if (const auto drift = left_out(others.calls, most.calls)) return left_out_by(others, most, *drift, tie);
    const auto drift = left_out(most.calls, others.calls);
    if (!drift) return std::nullopt;
    if (tie) return left_out_by(most, others, *drift, tie);
    return out_of_step(
        others.ranks, *drift,
        fmt::format("made {}, which {} left out", calls(*drift, others.calls), describe_ranks(most.ranks)));
  }

 private:
  CallDrift out_of_step(const std::vector<int>& ranks, const Drift& drift, const std::string& what) const {
    const bool one = ranks.size() == 1;
    auto from = fmt::format("#{} of group \"{}\"", drift.from + 1, group_);
    auto text = fmt::format("{} {} out of step from {} on: {} {}", describe_ranks(ranks), one ? "is" : "are", from,
                            one ? "it" : "they", what);
    return {{Cause::Kind::out_of_step, ranks, std::move(from)}, std::move(text)};
  }

  CallDrift left_out_by(const AlikeCalls& fewer, const AlikeCalls& more, const Drift& drift, bool tie) const {
    const auto rest = describe_ranks(more.ranks);
    const auto who_made_it = tie ? fmt::format("or {} made too many", rest) : fmt::format("which {} made", rest);
    return out_of_step(fewer.ranks, drift, fmt::format("left out {}, {}", calls(drift, more.calls), who_made_it));
  }

  std::string calls(const Drift& drift, const Calls& all) const {
    const auto& first = *all[drift.from].event;
    const auto line = fmt::format("the {}{}", log_.signature(first).name, places_.place(log_.call_site(first)).at());
    return drift.apart == 1 ? line : fmt::format("{} calls from {} on", drift.apart, line);
  }

  const comm::EventLog& log_;
  const Places& places_;
  const std::string& group_;
};

}  // namespace

std::vector<CallDrift> drifts_of(const RunRecord& record, Verdict verdict, const Places& places) {
  const auto& log = record.events;
  const auto groups = calls_up_to_the_failure(record, verdict);
  if (groups.empty() || log.call_sites().size() < 2) return {};
  const auto events = log.kept();
  std::map<std::string, std::map<int, Calls>> calls;  // by group and rank
  for (const Event& event : events) {
    const auto type = log.signature(event).type;
    if (event.call_site == 0 || comm::is_point_to_point(type)) continue;
    const auto& group = log.group(event).name;
    const auto& lines = places.lines(log.call_site(event));
    if (!groups.contains(group) || record.raced_groups.contains(group) || lines.empty()) continue;
    auto& of_rank = calls[group][event.rank];
    // An index in the list is the number of a call only if all earlier calls are known.
    if (of_rank.size() + 1 == event.seq_id) of_rank.push_back({&event, &lines, type});
  }
  std::vector<CallDrift> drifts;
  for (const auto& [group, by_rank] : calls) {
    const auto sides = sides_of(by_rank);
    const DriftText text(log, places, group);
    for (std::size_t i = 1; i < sides.size(); ++i) {
      if (auto drift = text.of(sides.front(), sides[i])) drifts.push_back(std::move(*drift));
    }
  }
  return drifts;
}

}  // namespace rehearse::sim
