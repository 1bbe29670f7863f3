// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/hash/word_hash.h>
#include <rehearse/sim/fault.h>

#include "fault_ledger.h"

namespace rehearse::sim {
namespace {

// "corrupt with=bit" of "corrupt rank=1 at=allreduce#2 with=bit": the rest says when, and on whom.
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

std::uint64_t FaultLedger::hash() const {
  WordHash hash(0);
  for (const auto& plan : plans_) {
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
