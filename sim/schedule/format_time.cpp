// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/sim/format_time.h>

#include <cstdint>

#include <fmt/format.h>

namespace rehearse::sim {

std::string format_time(VirtualTime time) {
  struct Unit {
    std::uint64_t size;  // in nanoseconds
    const char* name;
  };
  constexpr Unit kUnits[] = {{1'000'000'000, "s"}, {1'000'000, "ms"}, {1'000, "us"}};
  // Cannot be negative, because virtual time starts at zero and never goes back.
  const auto nanoseconds = static_cast<std::uint64_t>(time.time_since_epoch().count());
  for (const Unit& unit : kUnits) {
    if (nanoseconds < unit.size) continue;
    const std::uint64_t whole = nanoseconds / unit.size;
    const std::uint64_t thousandths = nanoseconds % unit.size / (unit.size / 1000);
    std::string decimals = thousandths == 0 ? "" : fmt::format(".{:03}", thousandths);
    while (!decimals.empty() && decimals.back() == '0') decimals.pop_back();
    return fmt::format("{}{} {}", whole, decimals, unit.name);
  }
  return fmt::format("{} ns", nanoseconds);
}

}  // namespace rehearse::sim
