// SPDX-License-Identifier: BSD-3-Clause
// Rules for a fault as a whole, and for a fault in a world.
#include <algorithm>
#include <chrono>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include <rehearse_internal/job/parameter_text.h>

#include "fault_fields.h"
#include "schedule/units.h"

namespace rehearse::sim {
namespace {

using Verb = Fault::Verb;

bool has_when(const Fault& fault) {
  return fault.at || fault.call || !fault.group.empty() || !fault.label.empty() || fault.after || fault.on ||
         fault.p != 1;
}

// Store faults and disk faults need no moment: they fire at the first call with their key, or at the first write.
// `slow` lasts for the whole run.
bool needs_when(Verb verb) { return verb != Verb::slow && !traits_of(verb).of_store && !traits_of(verb).of_disk; }

void require_slow(const Fault& fault) {
  if (fault.factor <= 1) throw FaultError("slow needs a factor, as in factor=2");
  if (!has_when(fault) && fault.times == 1) return;
  throw FaultError("slow lasts from the start to the end: it takes rank, factor and optional alone");
}

void require_restart(const Fault& fault) {
  const bool of_calls = fault.at || fault.call || !fault.group.empty() || !fault.label.empty();
  if (!of_calls && fault.p == 1 && fault.times == 1) return;
  throw FaultError("restart comes at a time, or on another fault: it takes rank, after, on and optional alone");
}

// Virtual time ends after 292 years. The sum of two durations below this limit does not reach that.
void require_short(std::string_view field, const std::optional<VirtualDuration>& duration) {
  constexpr VirtualDuration kMost = std::chrono::hours(24 * 365 * 100);
  if (!duration || *duration <= kMost) return;
  throw FaultError(fmt::format("{} is \"{}\"; it takes {} (100 years) at most", field, units::print_duration(*duration),
                               units::print_duration(kMost)));
}

void require_sides(const Fault& fault) {
  for (const int rank : fault.from) {
    if (std::find(fault.ranks.begin(), fault.ranks.end(), rank) == fault.ranks.end()) continue;
    throw FaultError(fmt::format("partition has rank {} on both sides", rank));
  }
}

void require_jump(const Fault& fault) {
  if (fault.by.count() == 0) throw FaultError("clock_jump needs a duration, as in by=1h or by=-5s");
  if (fault.clock == Fault::Clocks::wall || fault.by.count() > 0) return;
  throw FaultError("clock_jump of all clocks is by a duration above 0: the monotonic one never goes back");
}

// The named call must be one to which the verb applies: skip_collective at "send#1" would never fire.
void require_call(const Fault& fault, std::string_view field, const std::optional<Fault::Point>& point) {
  if (!point || point->op.empty()) return;
  const bool is_send = point->op == "send", is_receive = point->op == "recv" || point->op == "recv_any_source";
  const auto refuse = [&](std::string_view takes) {
    throw FaultError(fmt::format("{} is \"{}{}\"; {} takes {}", field, point->op,
                                 point->number == 0 ? "" : fmt::format("#{}", point->number), to_string(fault.verb),
                                 takes));
  };
  if (fault.verb == Verb::skip_collective && (is_send || is_receive)) refuse("a collective, not a message");
  if (fault.verb == Verb::corrupt && (is_send || point->op == "barrier")) refuse("a call that brings data");
  if (fault.verb == Verb::reorder && !is_send) refuse("a send");
}

// Shortened, because a list of ranks or a label may be of any length.
std::string shown(const Fault& fault) { return in_quotes(to_string(fault), 200); }

void require_ranks(const Fault& fault, const std::vector<int>& of_fault, std::string_view field, int ranks) {
  for (const int rank : of_fault) {
    if (rank >= 0 && rank < ranks) continue;
    throw FaultError(
        fmt::format("fault {}: {} is {}; the world has ranks 0 to {}", shown(fault), field, rank, ranks - 1));
  }
}

}  // namespace

void require_family(const Fault& fault) {
  const auto verb = to_string(fault.verb);
  const bool lasts = fault.verb == Verb::pause || fault.verb == Verb::delay || fault.verb == Verb::reorder ||
                     fault.verb == Verb::slow_disk;
  if (lasts && fault.amount.count() == 0) {
    throw FaultError(fmt::format("{} needs a duration, as in for=5ms", verb));
  }
  require_short("after", fault.after);
  require_short("for", fault.amount);
  require_short("restart", fault.restart);
  if (fault.verb == Verb::clock_jump) require_jump(fault);
  if (fault.with == Fault::Corruption::stale && (fault.element != 0 || fault.fraction != 0)) {
    throw FaultError("corrupt with=stale leaves the whole output as it was: it takes no element and no fraction");
  }
  if (fault.verb == Verb::slow) require_slow(fault);
  if (traits_of(fault.verb).of_ended) require_restart(fault);
  if (fault.verb == Verb::partition) require_sides(fault);
  if (traits_of(fault.verb).of_store && fault.key.empty()) {
    throw FaultError(fmt::format("{} needs a key, as in key=epoch", verb));
  }
  if (fault.at && fault.call) {
    throw FaultError(fmt::format("{} has both at and call: give one, they count the same calls differently", verb));
  }
  if (callee_of(fault) != Callee::group && (!fault.group.empty() || !fault.label.empty())) {
    throw FaultError(fmt::format("{} is at a {}: that has no group and no label", verb,
                                 callee_of(fault) == Callee::store ? "call of the store" : "write"));
  }
  require_call(fault, "at", fault.at);
  require_call(fault, "call", fault.call);
}

void require_whole(const Fault& fault) {
  require_family(fault);
  if (fault.verb == Verb::partition && fault.ranks.empty()) {
    throw FaultError("partition needs the ranks to cut off, as in rank=0-1");
  }
  if (!needs_when(fault.verb) || has_when(fault)) return;
  if (traits_of(fault.verb).of_ended) {
    throw FaultError("restart needs a time, as in after=5ms; as part of a crash or an exit, write restart=5ms");
  }
  throw FaultError(fmt::format("{} needs to say when: at, call, group, label, after, on or p", to_string(fault.verb)));
}

void require_valid(const std::vector<Fault>& faults, int ranks) {
  for (std::size_t number = 1; number <= faults.size(); ++number) {
    const Fault& fault = faults[number - 1];
    require_whole(fault);
    require_ranks(fault, fault.ranks, "rank", ranks);
    require_ranks(fault, fault.from, "from", ranks);
    if (fault.verb == Verb::partition && static_cast<int>(fault.ranks.size()) == ranks) {
      throw FaultError(fmt::format("fault {}: all ranks are on one side", shown(fault)));
    }
    if (!fault.on) continue;
    if (*fault.on == number) throw FaultError(fmt::format("fault {} is on itself", shown(fault)));
    if (*fault.on > faults.size()) {
      throw FaultError(fmt::format("fault {}: on is fault#{}; there {} {} in all", shown(fault), *fault.on,
                                   faults.size() == 1 ? "is" : "are", faults.size()));
    }
  }
}

}  // namespace rehearse::sim
