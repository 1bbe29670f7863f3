// SPDX-License-Identifier: BSD-3-Clause
#include "fault_plan.h"

#include <algorithm>

#include <rehearse/hash/word_hash.h>

#include "faults/text/fault_fields.h"

namespace rehearse::sim {
namespace {

// The part of the text that says what happens: "corrupt with=bit" from "corrupt rank=1 at=allreduce#2 with=bit".
std::string effect_of(Fault fault) {
  if (fault.verb != Fault::Verb::partition) fault.ranks.clear();
  fault.at.reset();
  fault.call.reset();
  fault.group.clear();
  fault.label.clear();
  fault.file.clear();
  fault.after.reset();
  fault.on.reset();
  fault.p = 1;
  fault.times = 1;
  fault.optional = false;
  return to_string(fault);
}

}  // namespace

bool is_of(const Fault& fault, int rank) {
  return fault.ranks.empty() || std::find(fault.ranks.begin(), fault.ranks.end(), rank) != fault.ranks.end();
}

bool needs_no_call(const Fault& fault) {
  const bool of_calls = fault.at || fault.call || !fault.group.empty() || !fault.label.empty();
  return traits_of(fault.verb).alone && (fault.after || fault.on) && !of_calls && fault.p == 1;
}

std::optional<VirtualTime> due(const Fault& fault, const std::vector<FaultPlan>& plans) {
  auto since = kTimeZero;
  if (fault.on) {
    const auto& other = plans[*fault.on - 1].line;
    if (other.fired.empty()) return std::nullopt;
    since = other.fired.front().at;
  }
  return later(since, fault.after.value_or(VirtualDuration::zero()));
}

std::uint64_t hash_of(const std::vector<FaultPlan>& plans) {
  WordHash hash(0);
  for (const auto& plan : plans) {
    if (plan.line.times == 0) continue;
    hash.add(effect_of(*plan.fault));
    hash.add(plan.line.times);
    for (const auto& firing : plan.line.fired) {
      hash.add(static_cast<std::uint64_t>(firing.rank));
      hash.add(firing.call);
      hash.add(static_cast<std::uint64_t>(firing.at.time_since_epoch().count()));
    }
  }
  return hash.value();
}

}  // namespace rehearse::sim
