// SPDX-License-Identifier: BSD-3-Clause
#include "test_environment.h"

#include <string_view>

#include <fmt/format.h>

#include <rehearse_internal/sim/seed.h>

namespace rehearse {
namespace {

[[noreturn]] void refuse(const char* name, std::string_view value, std::string_view takes) {
  throw EnvironmentError(fmt::format("the environment variable {} is \"{}\"; it takes {}", name, value, takes));
}

}  // namespace

Environment read_environment(const std::function<const char*(const char* name)>& get) {
  const auto value_of = [&](const char* name) {
    const char* value = get(name);
    return std::string(value == nullptr ? "" : value);
  };
  const auto flag = [&](const char* name) -> std::optional<bool> {
    const auto value = value_of(name);
    if (value.empty()) return std::nullopt;
    if (value != "0" && value != "1") refuse(name, value, "0 or 1");
    return value == "1";
  };
  Environment environment;
  if (const auto seed = value_of("REHEARSE_SEED"); !seed.empty()) {
    environment.seed = sim::parse_seed(seed);
    if (!environment.seed) refuse("REHEARSE_SEED", seed, sim::kSeedTakes);
  }
  if (const auto runs = value_of("REHEARSE_RUNS"); !runs.empty()) {
    const auto count = sim::parse_seed(runs);
    if (!count || *count == 0) refuse("REHEARSE_RUNS", runs, "a number of seeds, 1 or more");
    environment.runs = count;
  }
  if (const auto schedule = value_of("REHEARSE_SCHEDULE"); !schedule.empty()) {
    environment.schedule = sim::parse_strategy(schedule);
    if (!environment.schedule) refuse("REHEARSE_SCHEDULE", schedule, sim::kStrategyTakes);
  }
  environment.preempt = flag("REHEARSE_PREEMPT");
  environment.check_determinism = flag("REHEARSE_CHECK_DETERMINISM").value_or(false);
  if (const auto limit = value_of("REHEARSE_TIME_LIMIT"); !limit.empty()) {
    constexpr std::uint64_t kSecondsMost = 1'000'000;
    const auto seconds = sim::parse_seed(limit);
    if (!seconds || *seconds == 0 || *seconds > kSecondsMost) {
      refuse("REHEARSE_TIME_LIMIT", limit, "seconds, from 1 to 1000000");
    }
    environment.time_limit = std::chrono::seconds(*seconds);
  }
  environment.replay = value_of("REHEARSE_REPLAY");
  environment.trace_directory = value_of("REHEARSE_TRACE");
  return environment;
}

}  // namespace rehearse
