// SPDX-License-Identifier: BSD-3-Clause
#include "units.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <limits>
#include <span>

#include <fmt/format.h>

namespace rehearse::sim::units {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

// print_whole() and print_flops() take the first unit in the table that fits.
constexpr Unit kDurations[] = {{"h", 3600e9}, {"min", 60e9}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}};

constexpr double kKibi = 1024;
constexpr Unit kBytes[] = {{"TiB", kKibi* kKibi* kKibi* kKibi},
                           {"GiB", kKibi* kKibi* kKibi},
                           {"MiB", kKibi* kKibi},
                           {"KiB", kKibi},
                           {"B", 1},
                           {"TB", 1e12},
                           {"GB", 1e9},
                           {"MB", 1e6},
                           {"KB", 1e3}};

constexpr Unit kFlopsPerSecond[] = {{"PFLOP/s", 1e15}, {"TFLOP/s", 1e12}, {"GFLOP/s", 1e9},
                                    {"MFLOP/s", 1e6},  {"KFLOP/s", 1e3},  {"FLOP/s", 1}};

constexpr Unit kBitsPerSecond[] = {{"Tbit/s", 1e12 / 8}, {"Gbit/s", 1e9 / 8}, {"Mbit/s", 1e6 / 8}};

std::optional<double> factor_of(std::span<const Unit> units, std::string_view name) {
  for (const auto& unit : units) {
    if (unit.name == name) return unit.factor;
  }
  return std::nullopt;
}

struct Quantity {
  double number;
  std::string_view unit;
};

std::optional<Quantity> split(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number) || std::signbit(number)) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  return Quantity{number, text};
}

// In binary, 16.1us is 16100.000000000002ns. Takes the nearest whole number if it differs by at most 1e-12 of its size;
// refuses 1.5ns, for example.
template <class Int>
std::optional<Int> whole(double value) {
  const double nearest = std::round(value);
  if (std::abs(value - nearest) > nearest * 1e-12) return std::nullopt;
  if (nearest >= static_cast<double>(std::numeric_limits<Int>::max())) return std::nullopt;
  return static_cast<Int>(nearest);
}

// The number at the beginning of the text, if it has no fraction and no exponent. A double does not hold every integer
// above 2^53.
template <class Int>
std::optional<Int> integer(std::string_view text) {
  Int number = 0;
  const auto* const after = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), after, number);
  const bool goes_on = end != after && (*end == '.' || *end == 'e' || *end == 'E');
  return error == std::errc() && !goes_on ? std::optional(number) : std::nullopt;
}

template <class Int>
std::optional<Int> parse_whole(std::span<const Unit> units, std::string_view text) {
  const auto quantity = split(text);
  if (!quantity) return std::nullopt;
  const auto factor = factor_of(units, quantity->unit);
  if (!factor) return std::nullopt;
  const auto number = integer<Int>(text);
  if (!number) return whole<Int>(quantity->number * *factor);
  Int product = 0;
  const bool fits = !__builtin_mul_overflow(*number, static_cast<Int>(*factor), &product);
  return fits ? std::optional(product) : std::nullopt;
}

template <class Int>
std::string print_whole(std::span<const Unit> units, std::string_view smallest, Int value) {
  for (const auto& unit : units) {
    const auto factor = static_cast<Int>(unit.factor);
    if (value != 0 && value % factor == 0) return fmt::format("{}{}", value / factor, unit.name);
  }
  return fmt::format("{}{}", value, smallest);
}

}  // namespace

std::optional<std::chrono::nanoseconds> parse_duration(std::string_view text) {
  const auto count = parse_whole<std::int64_t>(kDurations, text);
  if (!count) return std::nullopt;
  return std::chrono::nanoseconds(*count);
}

std::string print_duration(std::chrono::nanoseconds duration) {
  return print_whole<std::int64_t>(kDurations, "ns", duration.count());
}

std::optional<std::uint64_t> parse_bytes(std::string_view text) { return parse_whole<std::uint64_t>(kBytes, text); }

std::string print_bytes(std::uint64_t bytes) { return print_whole<std::uint64_t>(kBytes, "B", bytes); }

std::string about_bytes(std::uint64_t bytes) {
  for (const std::string_view unit : {"TiB", "GiB", "MiB", "KiB"}) {
    const double factor = *factor_of(kBytes, unit);
    const auto number = static_cast<double>(bytes) / factor;
    if (number >= 1) return fmt::format("{:.4g}{}", number, unit);
  }
  return fmt::format("{}B", bytes);
}

std::optional<double> parse_bandwidth(std::string_view text) {
  const auto quantity = split(text);
  if (!quantity) return std::nullopt;
  auto factor = factor_of(kBitsPerSecond, quantity->unit);
  if (!factor && quantity->unit.ends_with("/s")) {
    factor = factor_of(kBytes, quantity->unit.substr(0, quantity->unit.size() - 2));
  }
  if (!factor || quantity->number == 0) return std::nullopt;
  return quantity->number * *factor;
}

std::string print_bandwidth(double bytes_per_second) {
  for (const std::string_view unit : {"TB/s", "GB/s", "MB/s", "KB/s"}) {
    const double factor = *factor_of(kBytes, unit.substr(0, 2));
    const auto text = fmt::format("{}{}", bytes_per_second / factor, unit);
    if (bytes_per_second >= factor && parse_bandwidth(text) == bytes_per_second) return text;
  }
  return fmt::format("{}B/s", bytes_per_second);
}

std::optional<double> parse_flops(std::string_view text) {
  const auto quantity = split(text);
  if (!quantity) return std::nullopt;
  const auto factor = factor_of(kFlopsPerSecond, quantity->unit);
  if (!factor || quantity->number == 0) return std::nullopt;
  return quantity->number * *factor;
}

std::string print_flops(double flops_per_second) {
  for (const auto& unit : kFlopsPerSecond) {
    const auto text = fmt::format("{}{}", flops_per_second / unit.factor, unit.name);
    if (flops_per_second >= unit.factor && parse_flops(text) == flops_per_second) return text;
  }
  return fmt::format("{}FLOP/s", flops_per_second);
}

std::optional<std::chrono::sys_seconds> parse_date(std::string_view text) {
  constexpr std::string_view kPattern = "dddd-dd-ddTdd:dd:ddZ";
  constexpr std::size_t kDateAlone = 10;
  if (text.size() != kPattern.size() && text.size() != kDateAlone) return std::nullopt;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_digit = text[i] >= '0' && text[i] <= '9';
    if (kPattern[i] == 'd' ? !is_digit : text[i] != kPattern[i]) return std::nullopt;
  }
  const auto number = [&](std::size_t begin, std::size_t count) {
    int value = 0;
    for (const char digit : text.substr(std::min(begin, text.size()), count)) value = value * 10 + (digit - '0');
    return value;
  };
  const std::chrono::year_month_day day{std::chrono::year(number(0, 4)),
                                        std::chrono::month(static_cast<unsigned>(number(5, 2))),
                                        std::chrono::day(static_cast<unsigned>(number(8, 2)))};
  const int hours = number(11, 2), minutes = number(14, 2), seconds = number(17, 2);
  const bool exists = day.ok() && day.year() >= std::chrono::year(1970) && day.year() < std::chrono::year(2200) &&
                      hours < 24 && minutes < 60 && seconds < 60;
  if (!exists) return std::nullopt;
  return std::chrono::sys_days(day) + std::chrono::hours(hours) + std::chrono::minutes(minutes) +
         std::chrono::seconds(seconds);
}

std::string print_date(std::chrono::sys_seconds date) {
  const auto midnight = std::chrono::floor<std::chrono::days>(date);
  const std::chrono::year_month_day day = midnight;
  const std::chrono::hh_mm_ss time(date - midnight);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", int(day.year()), unsigned(day.month()),
                     unsigned(day.day()), time.hours().count(), time.minutes().count(), time.seconds().count());
}

}  // namespace rehearse::sim::units
