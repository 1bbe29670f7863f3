// SPDX-License-Identifier: BSD-3-Clause
#include "schedule/units.h"

#include <limits>

#include <gtest/gtest.h>
#include <rehearse_internal/sim/seed.h>

// Contract: quantities in scenario files are exact, carry a unit, and print back to the same value.
namespace rehearse::sim {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::minutes;
using std::chrono::nanoseconds;

TEST(Duration, WithUnits_Parses) {
  EXPECT_EQ(units::parse_duration("5us"), microseconds(5));
  EXPECT_EQ(units::parse_duration("30 min"), minutes(30));
  EXPECT_EQ(units::parse_duration("1.5h"), minutes(90));
  EXPECT_EQ(units::parse_duration("0.3us"), nanoseconds(300));
  EXPECT_EQ(units::parse_duration("0s"), nanoseconds(0));
}

TEST(Duration, NotADuration_IsRefused) {
  for (const char* text :
       {"", "5", "us", "-1s", "5 years", "5us ", "0.5ns", "inf s", "nan s", "1e30h", "5usx", "0x5s"}) {
    EXPECT_EQ(units::parse_duration(text), std::nullopt) << text;
  }
}

TEST(Duration, Printed_TakesTheLargestWholeUnit) {
  EXPECT_EQ(units::print_duration(nanoseconds(0)), "0ns");
  EXPECT_EQ(units::print_duration(nanoseconds(1500)), "1500ns");
  EXPECT_EQ(units::print_duration(minutes(30)), "30min");
  EXPECT_EQ(units::print_duration(minutes(90)), "90min");
  EXPECT_EQ(units::print_duration(hours(2)), "2h");
}

// A double has 53 bits, which is 104 days in nanoseconds.
TEST(Duration, Printed_ParsesToTheSame) {
  for (const std::int64_t count : {std::int64_t{1}, (std::int64_t{1} << 53) + 1, std::int64_t{1} << 62,
                                   std::numeric_limits<std::int64_t>::max()}) {
    const auto text = units::print_duration(nanoseconds(count));
    EXPECT_EQ(units::parse_duration(text), nanoseconds(count)) << text;
  }
  EXPECT_EQ(units::parse_duration("9223372036854775807h"), std::nullopt);
}

TEST(Bytes, WithUnits_Parses) {
  EXPECT_EQ(units::parse_bytes("8MiB"), 8u << 20);
  EXPECT_EQ(units::parse_bytes("64 KB"), 64'000u);
  EXPECT_EQ(units::parse_bytes("0.5KiB"), 512u);
  EXPECT_EQ(units::parse_bytes("8mb"), std::nullopt);
  EXPECT_EQ(units::parse_bytes("0.3B"), std::nullopt);
}

TEST(Bytes, Printed_ParsesToTheSame) {
  for (const std::uint64_t bytes : {0ull, 1ull, 1000ull, 1024ull, 8ull << 20, (8ull << 20) + 1, 3ull << 40}) {
    EXPECT_EQ(units::parse_bytes(units::print_bytes(bytes)), bytes) << units::print_bytes(bytes);
  }
  EXPECT_EQ(units::print_bytes(8u << 20), "8MiB");
}

TEST(Bandwidth, BitsAndBytes_Parse) {
  EXPECT_EQ(units::parse_bandwidth("50GB/s"), 50e9);
  EXPECT_EQ(units::parse_bandwidth("400Gbit/s"), 50e9);
  EXPECT_EQ(units::parse_bandwidth("1KiB/s"), 1024.0);
  EXPECT_EQ(units::parse_bandwidth("50GB"), std::nullopt);
  EXPECT_EQ(units::parse_bandwidth("0GB/s"), std::nullopt);
}

TEST(Bandwidth, Printed_ParsesToTheSame) {
  for (const double rate : {50e9, 1.0, 12.5, 1e9 / 3, 3.2e12, 450e9, 999.0}) {
    EXPECT_EQ(units::parse_bandwidth(units::print_bandwidth(rate)), rate) << units::print_bandwidth(rate);
  }
  EXPECT_EQ(units::print_bandwidth(50e9), "50GB/s");
  EXPECT_EQ(units::parse_flops("19.5TFLOP/s"), 19.5e12);
  EXPECT_EQ(units::parse_flops("1 FLOP/s"), 1.0);
  EXPECT_EQ(units::parse_flops("1TFLOPS"), std::nullopt);
  EXPECT_EQ(units::parse_flops("0PFLOP/s"), std::nullopt);
  for (const double rate : {1.0, 999.0, 1e3, 19.5e12, 1.0 / 3, 3e15}) {
    EXPECT_EQ(units::parse_flops(units::print_flops(rate)), rate) << units::print_flops(rate);
  }
  EXPECT_EQ(units::print_flops(19.5e12), "19.5TFLOP/s");
}

TEST(Seed, DecimalAndHex_Parse) {
  EXPECT_EQ(parse_seed("7"), 7u);
  EXPECT_EQ(parse_seed("0x8f3a"), 0x8f3au);
  EXPECT_EQ(parse_seed("18446744073709551615"), std::numeric_limits<std::uint64_t>::max());
  for (const char* text : {"", "-1", "0x", "7 ", "seven", "18446744073709551616", "1.0"}) {
    EXPECT_EQ(parse_seed(text), std::nullopt) << text;
  }
}

}  // namespace
TEST(Units, ADateIsOneOfUtc_WithATimeOrWithout) {
  using std::chrono::sys_days, std::chrono::year, std::chrono::hours, std::chrono::minutes;
  EXPECT_EQ(units::parse_date("2026-12-01"), sys_days(year(2026) / 12 / 1));
  EXPECT_EQ(units::parse_date("2024-02-29T23:59:00Z"), sys_days(year(2024) / 2 / 29) + hours(23) + minutes(59));
  for (const auto* const text : {"1970-01-01T00:00:00Z", "2026-12-01T09:30:05Z", "2199-12-31T23:59:59Z"})
    EXPECT_EQ(units::print_date(units::parse_date(text).value()), text);
  for (const auto* const text :
       {"", "2026", "2026-13-01", "2023-02-29", "1969-12-31", "2200-01-01", "2026-12-01T09:30Z", "2026-12-01T24:00:00Z",
        "2026-12-01T09:60:00Z", "2026-12-01 09:30:00Z", "26-12-01xx"})
    EXPECT_EQ(units::parse_date(text), std::nullopt) << text;
}

}  // namespace rehearse::sim
