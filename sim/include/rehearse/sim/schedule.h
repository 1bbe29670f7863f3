// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <rehearse/exec/oracle.h>
#include <rehearse/exec/time.h>

// The schedulers, and their names in scenarios, banners, reports and logs. To add one, add an enumerator here and a row
// in sim/schedule/schedule.cpp; nothing else lists them.
namespace rehearse {

enum class Schedule {
  random,       // draws every choice from the seed
  round_robin,  // always takes the fiber that has waited longest
  pct,          // draws priorities, and changes them at a few random points: PctOracle
  pos,          // draws a priority for each step, and anew for steps that race with the last one: PosOracle
  deviations,   // keeps to an order of the fibers, and leaves it at up to two random points: OrderOracle
  in_order,     // a fiber goes on until it waits, then the first one that can run: OrderOracle
  reverse,      // the same with the last one
};

// The name in scenarios and reports: "random".
std::string_view to_string(Schedule schedule) noexcept;

}  // namespace rehearse

namespace rehearse::sim {

// How long a rank that can run may be made to wait while time passes, in searches that let time pass.
inline constexpr VirtualDuration kPatience = std::chrono::milliseconds(10);

inline constexpr int kPctDepthMost = 64;

// Options of Schedule::pct: which bugs to look for, and how long runs are. PctOracle says how likely a seed then finds
// such a bug.
struct PctOptions {
  // The bug shows if this many conditions "this event comes before that one" hold. Priorities change depth - 1 times.
  int depth = 3;
  // The number of choices of the next fiber in a run; 0: unknown, each seed draws a number to assume. Also for
  // Schedule::deviations.
  std::uint64_t steps = 0;

  friend bool operator==(const PctOptions&, const PctOptions&) = default;
};

// How one run is scheduled: WorldOptions::schedule, pct, preempt and patience.
struct Strategy {
  Schedule schedule = Schedule::random;
  PctOptions pct = {};
  bool preempt = false;
  VirtualDuration patience{0};

  friend bool operator==(const Strategy&, const Strategy&) = default;
};

// In the words of banners, reports and options: "random", "pct:2:57+time+preempt". The numbers are the depth (for pct)
// and the steps, unless they are the defaults. "+time": with patience; "+time=5ms" if it is not kPatience.
std::string to_string(const Strategy& strategy);
// Reads that text. nullopt if it is none.
std::optional<Strategy> parse_strategy(std::string_view text);
inline constexpr std::string_view kStrategyTakes =
    "random, round_robin, pct, pos, deviations, in_order or reverse, and what is added, as in pct+preempt or "
    "pct:3:57+time=5ms+preempt";

// The strategies among which seeds take turns where many seeds are tried, without steps. Each is blind to some races.
// Before them, seeds 1 and 2 run the ranks in order and in reverse.
std::vector<Strategy> portfolio();

// PctOptions::steps of a run with time as a candidate, without and with preempt; 0: unknown.
struct ProbedSteps {
  std::uint64_t plain = 0, preempted = 0;
};

// All schedulers in the order of the enumerators, the default first.
std::vector<Schedule> all_schedules();

// True if another seed may lead to another schedule.
bool depends_on_seed(Schedule schedule) noexcept;

// Makes an oracle for one run; a second run needs a new one.
std::unique_ptr<Oracle> make_oracle(Schedule schedule, std::uint64_t seed, const PctOptions& pct = {});

}  // namespace rehearse::sim
