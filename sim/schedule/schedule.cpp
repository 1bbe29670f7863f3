// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/sim/schedule.h>

#include <array>

#include <rehearse_internal/sim/oracles.h>
#include <rehearse_internal/sim/pct_oracle.h>

namespace rehearse {
namespace {

struct ScheduleRow {
  Schedule schedule;
  std::string_view name;
  bool depends_on_seed;
  std::unique_ptr<Oracle> (*make_oracle)(std::uint64_t seed, const sim::PctOptions& pct);
};

constexpr std::array kSchedules{
    ScheduleRow{Schedule::random, "random", true,
                [](std::uint64_t seed, const sim::PctOptions&) -> std::unique_ptr<Oracle> {
                  return std::make_unique<sim::RandomOracle>(seed);
                }},
    ScheduleRow{Schedule::round_robin, "round_robin", false,
                [](std::uint64_t, const sim::PctOptions&) -> std::unique_ptr<Oracle> {
                  return std::make_unique<sim::RoundRobinOracle>();
                }},
    ScheduleRow{Schedule::pct, "pct", true,
                [](std::uint64_t seed, const sim::PctOptions& pct) -> std::unique_ptr<Oracle> {
                  return std::make_unique<sim::PctOracle>(seed, pct);
                }},
};

constexpr bool schedules_follow_enum() {
  for (std::size_t row = 0; row < kSchedules.size(); ++row) {
    if (static_cast<std::size_t>(kSchedules[row].schedule) != row) return false;
  }
  return true;
}
static_assert(schedules_follow_enum(), "a schedule is its row's index");

constexpr std::string_view kPreempt = "+preempt";

const ScheduleRow& row_of(Schedule schedule) noexcept { return kSchedules[static_cast<std::size_t>(schedule)]; }

}  // namespace

std::string_view to_string(Schedule schedule) noexcept { return row_of(schedule).name; }

namespace sim {

std::vector<Schedule> all_schedules() {
  std::vector<Schedule> schedules;
  for (const auto& row : kSchedules) schedules.push_back(row.schedule);
  return schedules;
}

bool depends_on_seed(Schedule schedule) noexcept { return row_of(schedule).depends_on_seed; }

std::unique_ptr<Oracle> make_oracle(Schedule schedule, std::uint64_t seed, const PctOptions& pct) {
  return row_of(schedule).make_oracle(seed, pct);
}

std::string schedule_text(Schedule schedule, bool preempt) {
  return std::string(to_string(schedule)) + (preempt ? std::string(kPreempt) : "");
}

bool says_preempt(std::string_view schedule_text) noexcept { return schedule_text.ends_with(kPreempt); }

}  // namespace sim
}  // namespace rehearse
