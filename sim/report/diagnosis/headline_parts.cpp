// SPDX-License-Identifier: BSD-3-Clause
#include "report/diagnosis/headline_parts.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
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
namespace {

// Ranks with the same last call form one side. Sides are in order of their lowest rank.
std::vector<Difference::Side> sides_without(const std::vector<int>& ranks, const char* never, const RunRecord& record,
                                            const RankOutcomes& ends) {
  std::vector<Difference::Side> sides;
  for (const int rank : ranks) {
    const auto* const last = record.events.last(rank);
    const auto text = last == nullptr ? fmt::format("{}, and made no other call", never)
                                      : fmt::format("{}; called last: {}", never, record.events.title(*last));
    const auto where = last == nullptr ? Place() : ends.places().place(record.events.call_site(*last));
    const auto same = std::ranges::find_if(
        sides, [&](const Difference::Side& side) { return side.fingerprint == text && side.where == where; });
    if (same != sides.end()) {
      same->ranks.push_back(rank);
    } else {
      sides.push_back({{rank}, text, where});
    }
  }
  return sides;
}

void set_absent(Difference& difference, std::vector<Difference::Side> sides) {
  if (sides.empty()) return;
  difference.second = std::move(sides.front());
  difference.others.assign(std::make_move_iterator(std::next(sides.begin())), std::make_move_iterator(sides.end()));
}

}  // namespace

Difference absence_from(const comm::PendingGroup& group, const RunRecord& record, const RankOutcomes& ends) {
  Difference difference;  // has no group, because the group does not exist yet
  difference.first = {group.called_by, fmt::format("{} (\"{}\")", group.call, group.name),
                      ends.places().place(group.where)};
  set_absent(difference, sides_without(group.missing, "never called it", record, ends));
  return difference;
}

Difference absence_from(const comm::PendingOperation& call, const RunRecord& record, const RankOutcomes& ends) {
  Difference difference;
  difference.group = call.group;
  difference.sequence = call.sequence;
  difference.first = {{}, call.call, ends.place_of(call)};
  for (const auto& each : record.pending) {
    if (each.call == call.call && each.is_send == call.is_send && (!call.is_send || each.rank == call.rank))
      difference.first.ranks.push_back(each.rank);
  }
  std::ranges::sort(difference.first.ranks);
  set_absent(difference,
             sides_without(call.waits_for, call.is_send ? "never received it" : "never called it", record, ends));
  return difference;
}

std::string ranks_returned(int ranks, std::string_view crashed, VirtualTime end, std::string_view kind_of_time) {
  return fmt::format("{} rank{} returned{} after {} of {} time", ranks, ranks == 1 ? "" : "s", crashed,
                     format_time(end), kind_of_time);
}

std::string and_more(int others) { return others > 0 ? fmt::format("; and {} more", others) : ""; }

std::string still_running(const std::vector<RankLine>& lines) {
  constexpr std::size_t kPlacesShown = 3;
  std::vector<std::pair<Place, std::vector<int>>> places;
  for (const RankLine& line : lines) {
    if (line.state != RankOutcome::stopped) continue;
    auto place = std::ranges::find_if(places, [&](const auto& known) { return known.first == line.where; });
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
  if (others > 0) text += and_more(others) + (others == 1 ? " failure" : " failures");
  return text;
}

CauseText timeout_before(const exec::RankFailure& failure, const RunRecord& record, const RankOutcomes& ends) {
  if (!follows_a_timeout(failure)) return {};
  const auto& wait = *failure.gave_up;
  const auto& all = record.pending;
  const auto made = std::ranges::find_if(
      all, [&](const comm::PendingOperation& call) { return call.rank == failure.rank && call.call == wait.call; });
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
  return std::ranges::any_of(calls, [&](const comm::Event& call) {
    return !call.completed() &&
           firing.call == comm::short_title(log.signature(call).name, call.seq_id, log.group(call).name);
  });
}

}  // namespace

CauseText held_up(const RunRecord& record) {
  std::set<int> ranks;
  std::vector<std::string> calls, texts;
  const auto add = [](std::vector<std::string>& to, const std::string& text) {
    if (std::ranges::find(to, text) == to.end()) to.push_back(text);
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

std::string never_came(const comm::PendingOperation& call, const RunRecord& record) {
  std::vector<int> never;
  for (const int rank : call.waits_for) {
    const auto calls = record.events.of_rank(rank);
    const bool has_called = std::ranges::any_of(calls, [&](const comm::Event& event) {
      return record.events.title(event) == call.call && record.events.group(event).name == call.group;
    });
    if (!has_called || call.is_send) never.push_back(rank);
  }
  if (never.empty()) return fmt::format(", which {} aborted", describe_ranks(call.waits_for));
  return fmt::format(", to which {} never came", describe_ranks(never));
}

std::string faults_behind(const Cause& drift, const std::vector<FaultLine>& faults) {
  for (const FaultLine& fault : faults) {
    const auto verb = parse_fault(fault.fault).verb;
    if (verb != Fault::Verb::fail_op && verb != Fault::Verb::skip_collective) continue;
    for (const auto& firing : fault.fired) {
      if (std::ranges::find(drift.ranks, firing.rank) != drift.ranks.end())
        return fmt::format(" (fault on rank {}: {})", firing.rank, fault.fault);
    }
  }
  return "";
}

namespace {

std::string ends_of_cut(const Fault& fault, int ranks) {
  auto others = fault.from;
  for (int rank = 0; fault.from.empty() && rank < ranks; ++rank) {
    if (std::ranges::find(fault.ranks, rank) == fault.ranks.end()) others.push_back(rank);
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
  const auto event = std::ranges::find_if(events, [&](const comm::Event& each) {
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

CauseText came_late(const std::vector<int>& ranks, const std::string& call, VirtualTime timeout,
                    const std::vector<int>& waiting) {
  return {fmt::format("{} came to {} only when the timeout at {} had ended the wait of {}", describe_ranks(ranks), call,
                      format_time(timeout), describe_ranks(waiting)),
          {{Cause::Kind::late, ranks, call, {}, waiting}}};
}

std::string waits_text(const std::vector<comm::WaitEdge>& waits, std::size_t awaited, bool is_over) {
  constexpr std::size_t kCallsShown = 2;
  std::vector<std::pair<std::string, std::set<int>>> calls;
  for (const auto& wait : waits) {
    auto call = std::ranges::find_if(calls, [&](const auto& known) { return known.first == wait.call; });
    if (call == calls.end()) call = calls.insert(call, {wait.call, {}});
    call->second.insert(wait.from);
  }
  std::vector<std::string> texts;
  for (const auto& [call, waiting] : calls) {
    if (texts.size() == kCallsShown) break;
    const std::vector<int> ranks(waiting.begin(), waiting.end());
    const auto* const verb = is_over ? "waited" : ranks.size() == 1 ? "waits" : "wait";
    const auto whom = texts.empty() ? fmt::format(" {} for {}", verb, awaited == 1 ? "it" : "them") : "";
    texts.push_back(fmt::format("{}{} in {}", describe_ranks(ranks), whom, call));
  }
  if (texts.size() < calls.size()) texts.emplace_back("others in other calls");
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string missing_at_end(const RankLine& line, const std::vector<comm::WaitEdge>& waits) {
  const auto stood = line.state == RankOutcome::returned ? std::string("had returned")
                     : line.where.empty()                ? std::string("did not come")
                                                         : "was" + line.where.at();
  const auto text = fmt::format("; rank {} {}", line.rank, stood);
  return waits.empty() ? text : text + "; " + waits_text(waits, 1, true);
}

std::string last_calls_text(const std::vector<LastCall>& calls) {
  constexpr std::size_t kLastCallsShown = 2;
  std::vector<std::pair<std::string, std::vector<int>>> told;
  for (const auto& call : calls) {
    const auto what = call.title.empty() ? "called nothing" : "called last: " + call.title + call.where.at();
    const auto same = std::ranges::find_if(told, [&](const auto& each) { return each.first == what; });
    if (same != told.end()) {
      same->second.push_back(call.rank);
    } else {
      told.push_back({what, {call.rank}});
    }
  }
  std::string text;
  for (std::size_t i = 0; i < std::min(told.size(), kLastCallsShown); ++i)
    text += fmt::format("; {} {}", describe_ranks(told[i].second), told[i].first);
  return text + and_more(static_cast<int>(told.size()) - static_cast<int>(kLastCallsShown));
}

CauseText crossed(const CrossedCalls& calls) {
  return {fmt::format("rank {} called {} before {}, and rank {} after it: all ranks called both with the same "
                      "arguments, and neither has ended; make calls on several groups in the same order on all ranks",
                      calls.rank, calls.first, calls.second, calls.other),
          {{Cause::Kind::ring, {calls.rank}, calls.first}, {Cause::Kind::ring, {calls.other}, calls.second}}};
}

CauseText never_ended(const std::vector<int>& ranks, const std::string& call, const Place& where, bool alike) {
  return {fmt::format("{}{}: all its ranks called it{}, and on {} it has not ended; the fault probably lies below the "
                      "calls (network, device, driver)",
                      call, where.at(), alike ? " alike" : "", describe_ranks(ranks)),
          {{Cause::Kind::stuck, ranks, call, where}}};
}

std::string imbalance_text(const Imbalance& imbalance) {
  return fmt::format("{}: its ranks send {} elements in all and expect {}, so splits of theirs do not fit",
                     imbalance.call, imbalance.sent, imbalance.expected);
}

std::string all_complete(std::size_t calls, const std::vector<int>& without_dump) {
  auto text = fmt::format("all {} calls in the dumps are complete", calls);
  if (without_dump.empty()) return text;
  return fmt::format("as far as is known, {}; {} left no dump, so look there first", text,
                     describe_ranks(without_dump));
}

bool have_all_returned(const std::vector<int>& ranks, const RankOutcomes& ends) {
  return std::ranges::all_of(ranks, [&](int rank) { return ends.line_of(rank).state == RankOutcome::returned; });
}

std::string_view absence_of(const std::vector<int>& ranks, const RankOutcomes& ends) {
  if (!have_all_returned(ranks, ends)) return "never came to";
  return ranks.size() == 1 ? "has ended without" : "have ended without";
}

}  // namespace rehearse::sim
