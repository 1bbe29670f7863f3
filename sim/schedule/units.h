// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// Quantities as people write them: a number, perhaps a space, and a unit ("30min", "8 MiB", "1.5us"). The unit is
// required, even for 0: "0s". Parsing returns nothing for a text that is no such quantity, is negative, or does not fit
// into the type. The print functions return a text that parses to the same value, unless the value is one that does not
// parse.
namespace rehearse::sim::units {

// Units: ns, us, ms, s, min, h. A duration is a whole number of nanoseconds.
std::optional<std::chrono::nanoseconds> parse_duration(std::string_view text);
std::string print_duration(std::chrono::nanoseconds duration);

// Units: B; KB, MB, GB, TB (powers of 1000); KiB, MiB, GiB, TiB (powers of 1024). A size is a whole number of bytes.
std::optional<std::uint64_t> parse_bytes(std::string_view text);
std::string print_bytes(std::uint64_t bytes);
// For people: rounded to four digits, "24MiB" for 24 MiB and a few bytes.
std::string about_bytes(std::uint64_t bytes);

// Units: bytes per second, that is, each size unit with "/s"; Mbit/s, Gbit/s, Tbit/s. 0 does not parse.
std::optional<double> parse_bandwidth(std::string_view text);
std::string print_bandwidth(double bytes_per_second);

// Units: floating-point operations per second, FLOP/s, also with K, M, G, T, P (powers of 1000). 0 does not parse.
std::optional<double> parse_flops(std::string_view text);
std::string print_flops(double flops_per_second);

// A date of UTC from 1970 to 2199, with a time or without: "2026-12-01", "2026-12-01T09:30:00Z".
std::optional<std::chrono::sys_seconds> parse_date(std::string_view text);
std::string print_date(std::chrono::sys_seconds date);

}  // namespace rehearse::sim::units
