// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/sim/schedule.h>

#include <array>
#include <charconv>

#include <fmt/format.h>

#include <rehearse/sim/world_options.h>
#include <rehearse_internal/sim/oracles.h>
#include <rehearse_internal/sim/order_oracle.h>
#include <rehearse_internal/sim/pct_oracle.h>
#include <rehearse_internal/sim/pos_oracle.h>

#include "schedule/units.h"

namespace rehearse {
namespace {

// The numbers behind the name: ":2:57".
enum class Numbers { none, steps, depth_and_steps };

using MakeOracle = std::unique_ptr<Oracle> (*)(std::uint64_t seed, const sim::PctOptions& pct);

struct ScheduleRow {
  Schedule schedule;
  std::string_view name;
  bool depends_on_seed;
  Numbers numbers;
  MakeOracle make_oracle;
};

template <sim::OrderOracle::Order order>
std::unique_ptr<Oracle> make_order(std::uint64_t seed, const sim::PctOptions& pct) {
  return std::make_unique<sim::OrderOracle>(order, seed, pct.steps);
}

constexpr std::array kSchedules{
    ScheduleRow{Schedule::random, "random", true, Numbers::none,
                [](std::uint64_t seed, const sim::PctOptions&) -> std::unique_ptr<Oracle> {
                  return std::make_unique<sim::RandomOracle>(seed);
                }},
    ScheduleRow{Schedule::round_robin, "round_robin", false, Numbers::none,
                [](std::uint64_t, const sim::PctOptions&) -> std::unique_ptr<Oracle> {
                  return std::make_unique<sim::RoundRobinOracle>();
                }},
    ScheduleRow{Schedule::pct, "pct", true, Numbers::depth_and_steps,
                [](std::uint64_t seed, const sim::PctOptions& pct) -> std::unique_ptr<Oracle> {
                  return std::make_unique<sim::PctOracle>(seed, pct);
                }},
    ScheduleRow{Schedule::pos, "pos", true, Numbers::none,
                [](std::uint64_t seed, const sim::PctOptions&) -> std::unique_ptr<Oracle> {
                  return std::make_unique<sim::PosOracle>(seed);
                }},
    ScheduleRow{Schedule::deviations, "deviations", true, Numbers::steps, make_order<sim::OrderOracle::Order::drawn>},
    ScheduleRow{Schedule::in_order, "in_order", false, Numbers::none, make_order<sim::OrderOracle::Order::ascending>},
    ScheduleRow{Schedule::reverse, "reverse", false, Numbers::none, make_order<sim::OrderOracle::Order::descending>},
};

constexpr bool schedules_follow_enum() {
  for (std::size_t row = 0; row < kSchedules.size(); ++row) {
    if (static_cast<std::size_t>(kSchedules[row].schedule) != row) return false;
  }
  return true;
}
static_assert(schedules_follow_enum(), "a schedule is its row's index");

constexpr std::string_view kPreempt = "+preempt", kTime = "+time";

const ScheduleRow& row_of(Schedule schedule) noexcept { return kSchedules[static_cast<std::size_t>(schedule)]; }

bool takes(std::string_view& text, std::string_view begin) {
  if (!text.starts_with(begin)) return false;
  text.remove_prefix(begin.size());
  return true;
}

template <class Number>
bool takes_number(std::string_view& text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

// Reads ":2:57" or ":2", or ":57" for schedules without a depth, if it is there.
bool takes_numbers(std::string_view& text, Numbers numbers, sim::PctOptions& pct) {
  if (numbers == Numbers::none || !takes(text, ":")) return true;
  if (numbers == Numbers::steps) return takes_number(text, pct.steps);
  if (!takes_number(text, pct.depth) || pct.depth < 1 || pct.depth > sim::kPctDepthMost) return false;
  return !takes(text, ":") || takes_number(text, pct.steps);
}

// Reads "+time=5ms+preempt", in any order.
bool takes_additions(std::string_view& text, sim::Strategy& strategy) {
  for (;;) {
    if (!strategy.preempt && takes(text, kPreempt)) {
      strategy.preempt = true;
    } else if (strategy.patience == VirtualDuration::zero() && takes(text, kTime)) {
      strategy.patience = sim::kPatience;
      if (!takes(text, "=")) continue;
      const auto duration = text.substr(0, text.find('+'));
      strategy.patience = sim::units::parse_duration(duration).value_or(VirtualDuration::zero());
      if (strategy.patience <= VirtualDuration::zero()) return false;
      text.remove_prefix(duration.size());
    } else {
      return true;
    }
  }
}

std::string numbers_text(const sim::Strategy& strategy) {
  const auto& pct = strategy.pct;
  switch (row_of(strategy.schedule).numbers) {
    case Numbers::depth_and_steps:
      if (pct == sim::PctOptions()) return "";
      return pct.steps == 0 ? fmt::format(":{}", pct.depth) : fmt::format(":{}:{}", pct.depth, pct.steps);
    case Numbers::steps:
      return pct.steps == 0 ? "" : fmt::format(":{}", pct.steps);
    case Numbers::none:
      break;
  }
  return "";
}

}  // namespace

std::string_view to_string(Schedule schedule) noexcept { return row_of(schedule).name; }

namespace sim {

std::string to_string(const Strategy& strategy) {
  std::string text(to_string(strategy.schedule));
  text += numbers_text(strategy);
  if (strategy.patience > VirtualDuration::zero()) text += kTime;
  if (strategy.patience > VirtualDuration::zero() && strategy.patience != kPatience)
    text += "=" + units::print_duration(strategy.patience);
  if (strategy.preempt) text += kPreempt;
  return text;
}

std::optional<Strategy> parse_strategy(std::string_view text) {
  for (const auto& row : kSchedules) {
    auto rest = text;
    Strategy strategy{.schedule = row.schedule};
    if (!takes(rest, row.name) || !takes_numbers(rest, row.numbers, strategy.pct)) continue;
    if (takes_additions(rest, strategy) && rest.empty()) return strategy;
  }
  return std::nullopt;
}

// Each strategy is blind to some races (docs/DETERMINISM.md has the table), so the seeds take turns.
std::vector<Strategy> portfolio() {
  const auto with_time = [](Schedule schedule, bool preempt, int depth = 3) {
    return Strategy{.schedule = schedule, .pct = {.depth = depth}, .preempt = preempt, .patience = kPatience};
  };
  return {with_time(Schedule::random, false),   with_time(Schedule::random, true), with_time(Schedule::pct, false),
          with_time(Schedule::pct, true),       with_time(Schedule::pct, true, 2), with_time(Schedule::pos, true),
          with_time(Schedule::deviations, true)};
}

void take(const Strategy& strategy, WorldOptions& options) {
  options.schedule = strategy.schedule;
  options.pct = strategy.pct;
  options.preempt = strategy.preempt;
  options.patience = strategy.patience;
}

Strategy strategy_among_many(const WorldOptions& options, const ProbedSteps& probed) {
  Strategy strategy;
  if (options.schedule) {
    strategy = {*options.schedule, options.pct, options.preempt.value_or(true), kPatience};
  } else if (options.seed == 1 || options.seed == 2) {
    strategy.schedule = options.seed == 1 ? Schedule::in_order : Schedule::reverse;
    strategy.preempt = options.preempt.value_or(false);
  } else {
    auto all = portfolio();
    if (options.preempt) std::erase_if(all, [&](const auto& each) { return each.preempt != *options.preempt; });
    strategy = all[options.seed % all.size()];
    if (options.pct.depth != PctOptions().depth) strategy.pct.depth = options.pct.depth;
  }
  if (options.patience && strategy.patience > VirtualDuration::zero()) strategy.patience = *options.patience;
  if (row_of(strategy.schedule).numbers == Numbers::none) return strategy;
  // A run may make far more choices than the one that was counted, so some seeds assume more.
  constexpr std::uint64_t kRounds = 8, kMore = 4;
  const auto counted = strategy.preempt ? probed.preempted : probed.plain;
  const auto steps = options.seed / portfolio().size() % kRounds == kRounds - 1 ? kMore * counted : counted;
  strategy.pct.steps = options.pct.steps > 0 ? options.pct.steps : steps;
  return strategy;
}

std::vector<Schedule> all_schedules() {
  std::vector<Schedule> schedules;
  for (const auto& row : kSchedules) schedules.push_back(row.schedule);
  return schedules;
}

bool depends_on_seed(Schedule schedule) noexcept { return row_of(schedule).depends_on_seed; }

std::unique_ptr<Oracle> make_oracle(Schedule schedule, std::uint64_t seed, const PctOptions& pct) {
  return row_of(schedule).make_oracle(seed, pct);
}

}  // namespace sim
}  // namespace rehearse
