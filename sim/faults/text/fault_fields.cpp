// SPDX-License-Identifier: BSD-3-Clause
#include "fault_fields.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "faults/store/store_calls.h"
#include "field_kinds.h"
#include "schedule/units.h"

namespace rehearse::sim {
namespace {

using Verb = Fault::Verb;

constexpr VirtualDuration kJumpMost = std::chrono::hours(24 * 365 * 100);

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

void require_corruption(const Fault& fault) {
  if (fault.with != Fault::Corruption::stale || (fault.element == 0 && fault.fraction == 0)) return;
  throw FaultError("corrupt with=stale leaves the whole output as it was: it takes no element and no fraction");
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

template <class Is>
fields::Verbs verbs_that(const Is& is) {
  fields::Verbs verbs;
  for (const auto& row : fault_verbs()) {
    if (is(row.traits)) verbs.push_back(row.verb);
  }
  return verbs;
}

fields::Verbs verbs_of_calls() {
  return verbs_that([](const FaultTraits& traits) { return !traits.of_store && !traits.of_disk; });
}
fields::Verbs verbs_of_store() {
  return verbs_that([](const FaultTraits& traits) { return traits.of_store; });
}
fields::Verbs verbs_of_disk() {
  return verbs_that([](const FaultTraits& traits) { return traits.of_disk; });
}

std::vector<FaultField> when_fields() {
  const auto of_calls = verbs_of_calls(), of_store = verbs_of_store();
  return {
      fields::ranks("rank", "ranks, as in 3, 0,2 or 1-3, or all", {}, &Fault::ranks),
      fields::point("at", "a call by its number in its group, as in allreduce#12, allreduce or #12", of_calls,
                    &Fault::at),
      fields::point("call", "a call by its number among the rank's calls of that kind, as in allreduce#3", of_calls,
                    &Fault::call),
      fields::point("call", "a call by its number among the rank's calls of that kind on the key, as in get#2",
                    of_store, &Fault::call),
      fields::point("call", "a write by its number among the rank's in its scratch folder, as in write#3",
                    verbs_of_disk(), &Fault::call),
      fields::text("group", "the name of a group", of_calls, &Fault::group),
      fields::text("label", "the label of a call", of_calls, &Fault::label),
      {"after",
       "a virtual time in ns, us, ms, s, min or h, as in 2ms",
       {},
       [](Fault& fault, const std::string& typed) { return (fault.after = units::parse_duration(typed)).has_value(); },
       [](const Fault& fault) { return fault.after ? units::print_duration(*fault.after) : ""; }},
      {"on",
       "another fault by its place among all, as in fault#1",
       {},
       [](Fault& fault, const std::string& typed) {
         constexpr std::string_view kPrefix = "fault#";
         if (!typed.starts_with(kPrefix)) return false;
         fault.on = fields::number_of<std::size_t>(std::string_view(typed).substr(kPrefix.size()), 1, 1'000'000);
         return fault.on.has_value();
       },
       [](const Fault& fault) { return fault.on ? fmt::format("fault#{}", *fault.on) : ""; }},
      fields::number<double>("p", "a probability above 0, at most 1", {}, 1e-6, 1, &Fault::p),
  };
}

std::vector<FaultField> what_fields() {
  constexpr std::uint64_t kTimesMost = 1'000'000'000;
  constexpr std::uint64_t kElementMost = std::uint64_t{1} << 48;
  const auto that_end_ranks = verbs_that([](const FaultTraits& traits) { return traits.ends_rank; });
  return {
      {"for", "a duration in ns, us, ms, s, min or h, as in 5ms",
       verbs_that([](const FaultTraits& traits) { return traits.lasts || traits.of_sides; }),
       [](Fault& fault, const std::string& typed) {
         const auto amount = units::parse_duration(typed);
         if (amount) fault.amount = *amount;
         return amount && amount->count() > 0;
       },
       [](const Fault& fault) { return fault.amount.count() > 0 ? units::print_duration(fault.amount) : ""; }},
      fields::number<double>("factor", "a number from 1 to 1000000", {Verb::slow}, 1, 1e6, &Fault::factor),
      fields::number<int>("status", "an integer from 0 to 255", {Verb::exit}, 0, 255, &Fault::status),
      fields::choice<Fault::Corruption>(
          "with", {Verb::corrupt},
          {{"nan", Fault::Corruption::nan}, {"bit", Fault::Corruption::bit}, {"stale", Fault::Corruption::stale}},
          &Fault::with),
      fields::number<std::uint64_t>("element", "an integer from 0 on", {Verb::corrupt}, 0, kElementMost,
                                    &Fault::element),
      fields::number<double>("fraction", "a number above 0, at most 1", {Verb::corrupt}, 1e-12, 1, &Fault::fraction),
      {"by",
       "a duration in ns, us, ms, s, min or h, as in 1h or -5s",
       {Verb::clock_jump},
       [](Fault& fault, const std::string& typed) {
         const bool back = typed.starts_with('-');
         const auto by = units::parse_duration(back ? typed.substr(1) : typed);
         if (!by || *by > kJumpMost) return false;
         fault.by = back ? -*by : *by;
         return true;
       },
       [](const Fault& fault) {
         if (fault.by.count() == 0) return std::string();
         return fault.by.count() < 0 ? "-" + units::print_duration(-fault.by) : units::print_duration(fault.by);
       }},
      fields::choice<Fault::Clocks>("clock", {Verb::clock_jump},
                                    {{"wall", Fault::Clocks::wall}, {"all", Fault::Clocks::all}}, &Fault::clock),
      fields::choice<Fault::Peers>("peers", that_end_ranks,
                                   {{"timeout", Fault::Peers::timeout}, {"disconnect", Fault::Peers::disconnect}},
                                   &Fault::peers),
      {"restart", "a duration in ns, us, ms, s, min or h, as in 5ms: after the crash or the exit", that_end_ranks,
       [](Fault& fault, const std::string& typed) {
         return (fault.restart = units::parse_duration(typed)).has_value();
       },
       [](const Fault& fault) { return fault.restart ? units::print_duration(*fault.restart) : ""; }},
      fields::ranks("from", "ranks, as in 3, 0,2 or 1-3, or all", {Verb::partition}, &Fault::from),
      fields::choice<Fault::Way>("way", {Verb::partition},
                                 {{"both", Fault::Way::both}, {"out", Fault::Way::out}, {"in", Fault::Way::in}},
                                 &Fault::way),
      {"bytes",
       "a size, as in 1MiB",
       {Verb::fail_alloc},
       [](Fault& fault, const std::string& typed) {
         const auto bytes = units::parse_bytes(typed);
         if (bytes) fault.bytes = *bytes;
         return bytes && *bytes > 0;
       },
       [](const Fault& fault) { return fault.bytes > 1 ? units::print_bytes(fault.bytes) : ""; }},
      fields::text("file", "a file in the scratch folder, as in model.pt or *.pt", verbs_of_disk(), &Fault::file),
      fields::text("key", "a key of the store, as in epoch or rank_*", verbs_of_store(), &Fault::key),
      fields::number<std::uint64_t>("times", "an integer from 1 to 1000000000: on each rank", {}, 1, kTimesMost,
                                    &Fault::times),
      fields::choice<bool>("optional", {}, {{"false", false}, {"true", true}}, &Fault::optional),
  };
}

}  // namespace

const std::vector<FaultVerb>& fault_verbs() {
  using Takes = FaultTraits::Takes;
  static const std::vector<FaultVerb> verbs = {
      {Verb::crash,
       "crash",
       "the rank never runs again: no destructor, no `catch`",
       {.alone = true, .any_call = true, .ends_rank = true}},
      {Verb::exit,
       "exit",
       "the rank calls `exit(status)`; if the others go on, it ends as by a crash",
       {.any_call = true, .ends_rank = true}},
      {Verb::hang, "hang", "the rank never comes back from the call", {.any_call = true}},
      {Verb::pause,
       "pause",
       "the rank stands still before the call, `for` a duration",
       {.any_call = true, .lasts = true}},
      {Verb::slow,
       "slow",
       "from the start, the rank's computing and communication take `factor` times as long",
       {.of_run = true},
       require_slow},
      {Verb::delay, "delay", "the data of the call moves later, by `for`", {.lasts = true, .holds_up = true}},
      {Verb::skip_collective,
       "skip_collective",
       "the rank leaves the call out, and does not know",
       {.takes = Takes::collectives}},
      {Verb::fail_op, "fail_op", "the call throws `CommError`, one of the store `DistStoreError`", {.any_call = true}},
      {Verb::corrupt,
       "corrupt",
       "elements of the call's first output are wrong on the rank, `with` a NaN or a flipped bit, or all are stale",
       {.takes = Takes::data},
       require_corruption},
      {Verb::partition,
       "partition",
       "data between the ranks and those in `from` does not arrive, `for` a duration",
       {.alone = true, .of_world = true, .any_call = true, .of_sides = true},
       require_sides},
      {Verb::heal,
       "heal",
       "all partitions are over",
       {.alone = true, .of_world = true, .any_call = true, .mends = true}},
      {Verb::lose_key, "lose_key", "the store's `key` vanishes", {.alone = true, .of_world = true, .of_store = true}},
      {Verb::stale_key, "stale_key", "a get of `key` brings the value before the last one", {.of_store = true}},
      {Verb::clock_jump,
       "clock_jump",
       "the rank's clocks jump `by` a duration",
       {.alone = true, .any_call = true},
       require_jump},
      {Verb::fail_alloc,
       "fail_alloc",
       "the rank's next allocation for a tensor throws `c10::OutOfMemoryError`",
       {.alone = true, .any_call = true, .of_memory = true}},
      {Verb::reorder,
       "reorder",
       "a message arrives behind the rank's next one, or later by `for`",
       {.lasts = true, .holds_up = true, .takes = Takes::sends}},
      {Verb::restart,
       "restart",
       "at a time, the rank begins again if it has crashed, exited or returned by then",
       {.alone = true, .of_ended = true, .mends = true},
       require_restart},
      {Verb::disk_full, "disk_full", "a write in the scratch folder fails with `ENOSPC`", {.of_disk = true}},
      {Verb::torn_write,
       "torn_write",
       "half of such a write reaches the file, and the rank crashes",
       {.of_disk = true, .ends_rank = true}},
      {Verb::slow_disk, "slow_disk", "such a write takes longer, by `for`", {.of_disk = true, .lasts = true}},
  };
  return verbs;
}

Callee callee_of(const Fault& fault) {
  const auto& traits = traits_of(fault.verb);
  const auto names = [&](const auto& is_such) {
    return (fault.at && is_such(fault.at->op)) || (fault.call && is_such(fault.call->op));
  };
  if (traits.of_disk || names([](std::string_view op) { return op == kWrite; })) return Callee::disk;
  return traits.of_store || names(is_store_call) ? Callee::store : Callee::group;
}

bool has_when(const Fault& fault) {
  return fault.at || fault.call || !fault.group.empty() || !fault.label.empty() || fault.after || fault.on ||
         fault.p != 1;
}

bool has(const FaultField& field, Fault::Verb verb) {
  return field.verbs.empty() || std::find(field.verbs.begin(), field.verbs.end(), verb) != field.verbs.end();
}

const std::vector<FaultField>& fault_fields() {
  static const std::vector<FaultField> fields = [] {
    auto all = when_fields();
    for (auto& field : what_fields()) all.push_back(std::move(field));
    return all;
  }();
  return fields;
}

}  // namespace rehearse::sim
