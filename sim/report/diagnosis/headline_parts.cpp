// SPDX-License-Identifier: BSD-3-Clause
#include "report/diagnosis/headline_parts.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rehearse/comm/errors.h>
#include <rehearse/sim/fault.h>
#include <rehearse_internal/comm/operation.h>
#include <rehearse_internal/comm/title.h>
#include <rehearse_internal/formatting/rank_list.h>
#include <rehearse_internal/sim/format_time.h>

#include "faults/text/fault_fields.h"
#include "faults/transfers/partitions.h"
#include "report/ranks/rank_failure_text.h"

namespace rehearse::sim {

std::string still_running(const std::vector<RankLine>& lines) {
  constexpr std::size_t kPlacesShown = 3;
  std::vector<std::pair<Place, std::vector<int>>> places;
  for (const RankLine& line : lines) {
    if (line.state != RankOutcome::stopped) continue;
    auto place =
        std::find_if(places.begin(), places.end(), [&](const auto& known) { return known.first == line.where; });
    if (place == places.end()) place = places.insert(place, {line.where, {}});
    place->second.push_back(line.rank);
  }
  std::string text;
  for (std::size_t i = 0; i < std::min(places.size(), kPlacesShown); ++i) {
    const auto& [where, ranks] = places[i];
    const auto* const verb = i > 0 ? "" : ranks.size() == 1 ? " was still running" : " were still running";
    text += fmt::format("{}{}{}{}", i == 0 ? "; " : ", ", describe_ranks(ranks), verb, where.at());
  }
  if (places.size() > kPlacesShown) text += ", others elsewhere";
  return text;
}

std::string other_failures(const exec::RankFailure& first, const std::vector<exec::RankFailure>& all) {
  std::string text;
  int others = -1;
  for (const auto& failure : all) {
    const bool follows = is_timeout(failure) || is_a<CommError>(failure) || is_a<RankAborted>(failure);
    if (failure.rank == first.rank || follows || ++others > 0) continue;
    text = fmt::format("; rank {} failed, too: {}", failure.rank, gist_of(failure));
  }
  if (others > 0) text += fmt::format("; and {} more failure{}", others, others == 1 ? "" : "s");
  return text;
}

CauseText timeout_before(const exec::RankFailure& failure, const RunRecord& record, const RankOutcomes& ends) {
  if (!follows_a_timeout(failure)) return {};
  const auto& wait = *failure.gave_up;
  const auto& all = record.pending;
  const auto made = std::find_if(all.begin(), all.end(), [&](const comm::PendingOperation& call) {
    return call.rank == failure.rank && call.call == wait.call;
  });
  const auto where = made == all.end() ? "" : ends.place_of(*made).at();
  CauseText cause{fmt::format("; before that, at {}, rank {} timed out in {}{}", format_time(wait.at), failure.rank,
                              wait.call, where)};
  if (wait.waits_for.empty()) return cause;
  cause.text += fmt::format(": {} {} it", describe_ranks(wait.waits_for), absence_of(wait.waits_for, ends));
  if (have_all_returned(wait.waits_for, ends))
    cause.causes.push_back({Cause::Kind::ended_without, wait.waits_for, wait.call});
  return cause;
}

namespace {

// True if the call on which the fault fired has not moved its data. Faults name calls by their short titles.
bool holds_up(const FaultLine::Firing& firing, const comm::EventLog& log) {
  const auto calls = log.of_rank(firing.rank);
  return std::any_of(calls.begin(), calls.end(), [&](const comm::Event& call) {
    return !call.completed() &&
           firing.call == comm::short_title(log.signature(call).name, call.seq_id, log.group(call).name);
  });
}

}  // namespace

CauseText held_up(const RunRecord& record) {
  std::set<int> ranks;
  std::vector<std::string> calls, texts;
  const auto add = [](std::vector<std::string>& to, const std::string& text) {
    if (std::find(to.begin(), to.end(), text) == to.end()) to.push_back(text);
  };
  for (const FaultLine& fault : record.faults) {
    if (!traits_of(parse_fault(fault.fault).verb).holds_up) continue;
    for (const auto& firing : fault.fired) {
      if (!holds_up(firing, record.events)) continue;
      ranks.insert(firing.rank);
      add(calls, firing.call);
      add(texts, fault.fault);
    }
  }
  if (ranks.empty()) return {};
  const std::vector<int> all(ranks.begin(), ranks.end());
  const auto in = fmt::format("{}", fmt::join(calls, " and "));
  return {fmt::format("the data of {} in {} moved later ({}); ", describe_ranks(all), in, fmt::join(texts, ", ")),
          {{Cause::Kind::held_up, all, in}}};
}

namespace {

std::string ends_of_cut(const Fault& fault, int ranks) {
  auto others = fault.from;
  for (int rank = 0; fault.from.empty() && rank < ranks; ++rank) {
    if (std::find(fault.ranks.begin(), fault.ranks.end(), rank) == fault.ranks.end()) others.push_back(rank);
  }
  const auto own = describe_ranks(fault.ranks), other = describe_ranks(others);
  if (fault.way == Fault::Way::both) return fmt::format("between {} and {}", own, other);
  const bool out = fault.way == Fault::Way::out;
  return fmt::format("from {} to {}", out ? own : other, out ? other : own);
}

}  // namespace

CauseText standing_cuts_text(const std::vector<FaultLine>& faults, int ranks, VirtualTime end) {
  CauseText cuts;
  for (const auto& [fault, since] : standing_cuts(faults, end)) {
    cuts += {fmt::format("the network is cut {} since {}; ", ends_of_cut(fault, ranks),
                         since == kTimeZero ? "the start" : format_time(since)),
             {{Cause::Kind::cut, fault.ranks}}};
  }
  return cuts;
}

Awaited awaited_in(const exec::GivenUpWait& wait, int rank, const RunRecord& record) {
  const auto& log = record.events;
  const auto events = log.kept();
  const auto event = std::find_if(events.begin(), events.end(), [&](const comm::Event& each) {
    return each.rank == rank && !comm::is_point_to_point(log.signature(each).type) && log.title(each) == wait.call;
  });
  if (event == events.end()) return {};
  std::set<int> callers;
  for (const auto& other : events) {
    const bool is_same = other.pg_id == event->pg_id && other.seq_id == event->seq_id;
    if (is_same && !comm::is_point_to_point(log.signature(other).type)) callers.insert(other.rank);
  }
  Awaited awaited;
  for (const int each : wait.waits_for) (callers.contains(each) ? awaited.came_late : awaited.others).push_back(each);
  awaited.never_called = log.find(event->record_id) != nullptr;
  return awaited;
}

CauseText never_called(const std::vector<int>& ranks, const std::string& call, int waiting) {
  return {fmt::format("; {} never called {}", describe_ranks(ranks), call),
          {{Cause::Kind::left_out, ranks, call, {}, {waiting}}}};
}

bool have_all_returned(const std::vector<int>& ranks, const RankOutcomes& ends) {
  return std::all_of(ranks.begin(), ranks.end(),
                     [&](int rank) { return ends.line_of(rank).state == RankOutcome::returned; });
}

std::string_view absence_of(const std::vector<int>& ranks, const RankOutcomes& ends) {
  if (!have_all_returned(ranks, ends)) return "never came to";
  return ranks.size() == 1 ? "has ended without" : "have ended without";
}

}  // namespace rehearse::sim
