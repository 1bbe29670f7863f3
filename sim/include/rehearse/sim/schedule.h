// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <rehearse/exec/oracle.h>

// The schedulers, and their names in scenarios, banners, reports and logs. To add one, add an enumerator here and a row
// in sim/schedule/schedule.cpp; nothing else lists them.
namespace rehearse {

enum class Schedule {
  random,       // draws every choice from the seed
  round_robin,  // always takes the fiber that has waited longest
  pct,          // draws priorities, and changes them at a few random points: PctOracle
};

// The name in scenarios and reports: "random".
std::string_view to_string(Schedule schedule) noexcept;

}  // namespace rehearse

namespace rehearse::sim {

// Options of Schedule::pct: which bugs to look for, and how long runs are. PctOracle says how likely a seed then finds
// such a bug.
struct PctOptions {
  // The bug shows if this many conditions "this event comes before that one" hold. Priorities change depth - 1 times.
  int depth = 3;
  std::uint64_t steps = 0;  // choices of the next fiber in a run; 0: unknown, each seed draws a number to assume
};

// All schedulers in the order of the enumerators, the default first.
std::vector<Schedule> all_schedules();

// True if another seed may lead to another schedule.
bool depends_on_seed(Schedule schedule) noexcept;

// Makes an oracle for one run; a second run needs a new one.
std::unique_ptr<Oracle> make_oracle(Schedule schedule, std::uint64_t seed, const PctOptions& pct = {});

// How a run is scheduled, in the words of a report: "random", or "round_robin+preempt" with WorldOptions::preempt.
// says_preempt() reads those words back.
std::string schedule_text(Schedule schedule, bool preempt);
bool says_preempt(std::string_view schedule_text) noexcept;

}  // namespace rehearse::sim
