// SPDX-License-Identifier: BSD-3-Clause
#include "fault_fields.h"

#include <optional>

#include "faults/store/store_calls.h"

namespace rehearse::sim {

const std::vector<FaultVerb>& fault_verbs() {
  using Verb = Fault::Verb;
  static const std::vector<FaultVerb> verbs = {
      {Verb::crash, "crash", "the rank never runs again: no destructor, no `catch`", {.alone = true, .any_call = true}},
      {Verb::exit,
       "exit",
       "the rank calls `exit(status)`; if the others go on, it ends as by a crash",
       {.any_call = true}},
      {Verb::hang, "hang", "the rank never comes back from the call", {.any_call = true}},
      {Verb::pause, "pause", "the rank stands still before the call, `for` a duration", {.any_call = true}},
      {Verb::slow, "slow", "from the start, the rank's computing and communication take `factor` times as long"},
      {Verb::delay, "delay", "the data of the call moves later, by `for`"},
      {Verb::skip_collective, "skip_collective", "the rank leaves the call out, and does not know"},
      {Verb::fail_op, "fail_op", "the call throws `CommError`, one of the store `DistStoreError`", {.any_call = true}},
      {Verb::corrupt, "corrupt",
       "elements of the call's first output are wrong on the rank, `with` a NaN or a flipped bit, or all are stale"},
      {Verb::partition,
       "partition",
       "data between the ranks and those in `from` does not arrive, `for` a duration",
       {.alone = true, .of_world = true, .any_call = true}},
      {Verb::heal, "heal", "all partitions are over", {.alone = true, .of_world = true, .any_call = true}},
      {Verb::lose_key, "lose_key", "the store's `key` vanishes", {.alone = true, .of_world = true, .of_store = true}},
      {Verb::stale_key, "stale_key", "a get of `key` brings the value before the last one", {.of_store = true}},
      {Verb::clock_jump, "clock_jump", "the rank's clocks jump `by` a duration", {.alone = true, .any_call = true}},
      {Verb::fail_alloc,
       "fail_alloc",
       "the rank's next allocation for a tensor throws `c10::OutOfMemoryError`",
       {.alone = true, .any_call = true, .later = true}},
      {Verb::reorder, "reorder", "a message arrives behind the rank's next one, or later by `for`"},
      {Verb::restart,
       "restart",
       "at a time, the rank begins again if it has crashed, exited or returned by then",
       {.alone = true, .of_ended = true}},
      {Verb::disk_full, "disk_full", "a write in the scratch folder fails with `ENOSPC`", {.of_disk = true}},
      {Verb::torn_write,
       "torn_write",
       "half of such a write reaches the file, and the rank crashes",
       {.of_disk = true}},
      {Verb::slow_disk, "slow_disk", "such a write takes longer, by `for`", {.of_disk = true}},
  };
  return verbs;
}

std::string_view to_string(Fault::Verb verb) { return fault_verbs()[static_cast<std::size_t>(verb)].name; }

Callee callee_of(const Fault& fault) {
  const auto& traits = traits_of(fault.verb);
  const auto names = [&](const auto& is_such) {
    return (fault.at && is_such(fault.at->op)) || (fault.call && is_such(fault.call->op));
  };
  if (traits.of_disk || names([](std::string_view op) { return op == kWrite; })) return Callee::disk;
  return traits.of_store || names(is_store_call) ? Callee::store : Callee::group;
}

const FaultTraits& traits_of(Fault::Verb verb) { return fault_verbs()[static_cast<std::size_t>(verb)].traits; }

}  // namespace rehearse::sim
