// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <rehearse/exec/oracle.h>

// The schedulers, and what they are called in scenarios, banners, reports and logs. A new one is an enumerator here and
// a row in sim/schedule/schedule.cpp; nothing else lists them.
namespace rehearse {

enum class Schedule {
  random,       // every choice drawn from the seed
  round_robin,  // the rank that has waited longest, always
  pct,          // by random priorities that change at a few random points: PctOracle
};

// "random"
std::string_view to_string(Schedule schedule) noexcept;

}  // namespace rehearse

namespace rehearse::sim {

// Of Schedule::pct: which bugs it is for, and how long runs are. See PctOracle for what that promises.
struct PctOptions {
  int depth = 3;            // of a bug: how many events must come in order; priorities change depth - 1 times
  std::uint64_t steps = 0;  // choices of the next fiber in a run; 0: not known, each seed assumes another number
};

// In the order of the enumerators, the default first.
std::vector<Schedule> all_schedules();

// Nothing for any other text.
std::optional<Schedule> schedule_from_string(std::string_view name) noexcept;

// Whether another seed may take another way.
bool depends_on_seed(Schedule schedule) noexcept;

// For one run: a second run needs a new one.
std::unique_ptr<Oracle> make_oracle(Schedule schedule, std::uint64_t seed, const PctOptions& pct = {});

// What a run was scheduled by, in words: "random", "round_robin+preempt" (WorldOptions::preempt); and back, of the
// words of a report.
std::string schedule_text(Schedule schedule, bool preempt);
bool says_preempt(std::string_view schedule_text) noexcept;

}  // namespace rehearse::sim
