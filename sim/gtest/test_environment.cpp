// SPDX-License-Identifier: BSD-3-Clause
#include "test_environment.h"

#include <algorithm>

#include <fmt/format.h>

#include <rehearse_internal/sim/seed.h>

namespace rehearse {
namespace {

[[noreturn]] void refuse(std::string_view name, std::string_view value, std::string_view wrong) {
  throw EnvironmentError(fmt::format("the environment variable {} is \"{}\"{}", name, value, wrong));
}

}  // namespace

Environment read_environment(const std::function<const char*(const char* name)>& get) {
  const auto value_of = [&](const char* name) {
    const char* value = get(name);
    return std::string(value == nullptr ? "" : value);
  };
  Environment environment;
  for (const auto& row : sim::world_rows()) {
    const auto value = row.variable.empty() ? "" : value_of(row.variable.data());
    if (value.empty()) continue;
    WorldOptions alone;
    const auto wrong = row.value.set(alone, value, sim::Spelling::typed);
    if (!wrong.empty()) refuse(row.variable, value, wrong);
    environment.given.emplace_back(&row, value);
  }
  if (const auto runs = value_of("REHEARSE_RUNS"); !runs.empty()) {
    const auto count = sim::parse_seed(runs);
    if (!count || *count == 0) refuse("REHEARSE_RUNS", runs, "; it takes a number of seeds, 1 or more");
    environment.runs = count;
  }
  if (const auto twice = value_of("REHEARSE_CHECK_DETERMINISM"); !twice.empty()) {
    if (twice != "0" && twice != "1") refuse("REHEARSE_CHECK_DETERMINISM", twice, "; it takes 0 or 1");
    environment.check_determinism = twice == "1";
  }
  if (const auto limit = value_of("REHEARSE_TIME_LIMIT"); !limit.empty()) {
    constexpr std::uint64_t kSecondsMost = 1'000'000;
    const auto seconds = sim::parse_seed(limit);
    if (!seconds || *seconds == 0 || *seconds > kSecondsMost) {
      refuse("REHEARSE_TIME_LIMIT", limit, "; it takes seconds, from 1 to 1000000");
    }
    environment.time_limit = std::chrono::seconds(*seconds);
  }
  environment.replay = value_of("REHEARSE_REPLAY");
  environment.trace_directory = value_of("REHEARSE_TRACE");
  return environment;
}

bool Environment::gives(std::string_view variable) const {
  return std::ranges::any_of(given, [&](const auto& each) { return each.first->variable == variable; });
}

}  // namespace rehearse
