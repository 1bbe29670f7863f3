// SPDX-License-Identifier: BSD-3-Clause
#include "graph/run/python/python_arithmetic.h"

#include <bit>
#include <cmath>

#include "graph/run/python/python_numbers.h"

namespace rehearse::graph::python {
namespace {

__extension__ using Uint128 = unsigned __int128;

std::uint64_t magnitude(std::int64_t value) {
  return value < 0 ? ~static_cast<std::uint64_t>(value) + 1 : static_cast<std::uint64_t>(value);
}

}  // namespace

// Rounds the quotient once: computes at least 64 bits of it, and whether a remainder is left.
double quotient(std::int64_t x, std::int64_t y) {
  const std::uint64_t dividend = magnitude(x);
  const std::uint64_t divisor = magnitude(y);
  if (dividend == 0) return 0.0;
  const int shift = 63 + std::countl_zero(dividend);
  const Uint128 scaled = static_cast<Uint128>(dividend) << shift;
  const Uint128 rounded = scaled / divisor | (scaled % divisor != 0 ? 1 : 0);
  const double result = std::ldexp(static_cast<double>(rounded), -shift);
  return (x < 0) != (y < 0) ? -result : result;
}

// The result has the divisor's sign, even if the result is zero.
double remainder(double x, double y) {
  const double rest = std::fmod(x, y);
  if (rest == 0.0) return std::copysign(0.0, y);
  return (rest < 0) != (y < 0) ? rest + y : rest;
}

// Subtracts the remainder before dividing, because x / y may already be rounded up.
double floor_quotient(double x, double y) {
  const double rest = std::fmod(x, y);
  double exact = (x - rest) / y;
  if (rest != 0.0 && (rest < 0) != (y < 0)) exact -= 1.0;
  if (exact == 0.0) return std::copysign(0.0, x / y);
  const double below = std::floor(exact);
  return exact - below > 0.5 ? below + 1.0 : below;
}

std::partial_ordering compare(std::int64_t x, double y) {
  if (std::isnan(y)) return std::partial_ordering::unordered;
  if (y >= 9223372036854775808.0) return std::partial_ordering::less;
  if (y < -9223372036854775808.0) return std::partial_ordering::greater;
  const double below = std::floor(y);
  const auto whole_part = static_cast<std::int64_t>(below);
  return x == whole_part && y > below ? std::partial_ordering::less : std::partial_ordering(x <=> whole_part);
}

double real_pow(double base, double exponent) {
  if (base == 0.0 && exponent < 0 && std::isfinite(exponent)) fail("0.0 cannot be raised to a negative power");
  if (base < 0 && std::isfinite(base) && std::isfinite(exponent) && exponent != std::floor(exponent)) {
    fail("the result is complex");
  }
  const double result = std::pow(base, exponent);
  if (std::isinf(result) && std::isfinite(base) && std::isfinite(exponent)) fail("the result is too large for a float");
  return result;
}

}  // namespace rehearse::graph::python
