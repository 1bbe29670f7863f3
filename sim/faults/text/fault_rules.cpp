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

// Store faults and disk faults need no moment: they fire at the first call with their key, or at the first write.
bool needs_when(const FaultTraits& traits) { return !traits.of_run && !traits.of_store && !traits.of_disk; }

// Virtual time ends after 292 years. The sum of two durations below this limit does not reach that.
void require_short(std::string_view field, const std::optional<VirtualDuration>& duration) {
  constexpr VirtualDuration kMost = std::chrono::hours(24 * 365 * 100);
  if (!duration || *duration <= kMost) return;
  throw FaultError(fmt::format("{} is \"{}\"; it takes {} (100 years) at most", field, units::print_duration(*duration),
                               units::print_duration(kMost)));
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
  using Takes = FaultTraits::Takes;
  const auto takes = traits_of(fault.verb).takes;
  if (takes == Takes::collectives && (is_send || is_receive)) refuse("a collective, not a message");
  if (takes == Takes::data && (is_send || point->op == "barrier")) refuse("a call that brings data");
  if (takes == Takes::sends && !is_send) refuse("a send");
}

// Shortened, because a list of ranks or a label may be of any length.
std::string shown_fault(const Fault& fault) { return in_quotes(to_string(fault), 200); }

void require_ranks(const Fault& fault, const std::vector<int>& of_fault, std::string_view field, int ranks) {
  for (const int rank : of_fault) {
    if (rank >= 0 && rank < ranks) continue;
    throw FaultError(
        fmt::format("fault {}: {} is {}; the world has ranks 0 to {}", shown_fault(fault), field, rank, ranks - 1));
  }
}

}  // namespace

void require_family(const Fault& fault) {
  const auto& row = row_of(fault.verb);
  if (row.traits.lasts && fault.amount.count() == 0) {
    throw FaultError(fmt::format("{} needs a duration, as in for=5ms", row.name));
  }
  require_short("after", fault.after);
  require_short("for", fault.amount);
  require_short("restart", fault.restart);
  if (row.require != nullptr) row.require(fault);
  if (row.traits.of_store && fault.key.empty()) {
    throw FaultError(fmt::format("{} needs a key, as in key=epoch", row.name));
  }
  if (fault.at && fault.call) {
    throw FaultError(fmt::format("{} has both at and call: give one, they count the same calls differently", row.name));
  }
  if (callee_of(fault) != Callee::group && (!fault.group.empty() || !fault.label.empty())) {
    throw FaultError(fmt::format("{} is at a {}: that has no group and no label", row.name,
                                 callee_of(fault) == Callee::store ? "call of the store" : "write"));
  }
  require_call(fault, "at", fault.at);
  require_call(fault, "call", fault.call);
}

void require_whole(const Fault& fault) {
  require_family(fault);
  const auto& traits = traits_of(fault.verb);
  if (traits.of_sides && fault.ranks.empty()) {
    throw FaultError("partition needs the ranks to cut off, as in rank=0-1");
  }
  if (!needs_when(traits) || has_when(fault)) return;
  if (traits.of_ended) {
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
    if (traits_of(fault.verb).of_sides && static_cast<int>(fault.ranks.size()) == ranks) {
      throw FaultError(fmt::format("fault {}: all ranks are on one side", shown_fault(fault)));
    }
    if (!fault.on) continue;
    if (*fault.on == number) throw FaultError(fmt::format("fault {} is on itself", shown_fault(fault)));
    if (*fault.on > faults.size()) {
      throw FaultError(fmt::format("fault {}: on is fault#{}; there {} {} in all", shown_fault(fault), *fault.on,
                                   faults.size() == 1 ? "is" : "are", faults.size()));
    }
  }
}

}  // namespace rehearse::sim
