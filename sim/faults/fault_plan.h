// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include <rehearse/exec/time.h>
#include <rehearse/job/fault_line.h>
#include <rehearse/sim/fault.h>

#include "near_misses.h"

namespace rehearse::sim {

// One fault of a world, with its firings so far and its near misses.
struct FaultPlan {
  // Each rank is a target of its own.
  struct Target {
    std::uint64_t fired = 0;
    NearMisses nearly;
  };
  const Fault* fault = nullptr;
  FaultLine line;
  std::map<int, Target> targets;  // by rank
  std::uint64_t drawn = 0;        // how often the oracle drew for it
};

bool is_of(const Fault& fault, int rank);

// True if the fault happens at a time or when another fault fires, and not at a call.
bool needs_no_call(const Fault& fault);

// The time from which `fault`, a fault of one of the plans, may fire. Nothing: the fault on which it depends has not
// fired.
std::optional<VirtualTime> due(const Fault& fault, const std::vector<FaultPlan>& plans);

// A hash, for the run's identity, of what each fault did, where and when, but not of what brought the fault about. 0:
// no fault fired.
std::uint64_t hash_of(const std::vector<FaultPlan>& plans);

}  // namespace rehearse::sim
