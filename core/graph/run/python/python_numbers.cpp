// SPDX-License-Identifier: BSD-3-Clause
#include "graph/run/python/python_numbers.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <compare>
#include <limits>
#include <stdexcept>

namespace rehearse::graph::python {
namespace {

bool is_whole(const IValue& value) { return value.isInt() || value.isBool(); }

double real(const IValue& value) {
  if (value.isDouble()) return value.toDouble();
  if (is_whole(value)) return static_cast<double>(whole(value));
  fail("takes numbers, and was given " + value.tagKind());
}

bool truth(const IValue& value) { return value.isDouble() ? value.toDouble() != 0.0 : whole(value) != 0; }

[[noreturn]] void overflow() { fail("the result does not fit into 64 bits"); }

std::int64_t to_whole(double value) {
  if (!(value >= -9223372036854775808.0 && value < 9223372036854775808.0)) overflow();
  return static_cast<std::int64_t>(value);
}

// Calls `whole_case` for ints and bools, and `real_case` otherwise. `whole_case` returns whether it overflowed.
template <class Whole, class Real>
IValue arithmetic(const Arguments& a, Whole whole_case, Real real_case) {
  if (!is_whole(a[0]) || !is_whole(a[1])) return real_case(real(a[0]), real(a[1]));
  std::int64_t result = 0;
  if (whole_case(whole(a[0]), whole(a[1]), result)) overflow();
  return result;
}

void check_divisor(const IValue& divisor) {
  if (real(divisor) == 0.0) fail("division by zero");
}

// Functions for which Python's arithmetic on plain numbers differs from C++'s.

__extension__ using Uint128 = unsigned __int128;

std::uint64_t magnitude(std::int64_t value) {
  return value < 0 ? ~static_cast<std::uint64_t>(value) + 1 : static_cast<std::uint64_t>(value);
}

// x / y; y is not 0. Rounds the quotient once: computes at least 64 bits of it, and whether a remainder is left.
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

// x % y. The result has the divisor's sign, even if the result is zero.
double remainder(double x, double y) {
  const double rest = std::fmod(x, y);
  if (rest == 0.0) return std::copysign(0.0, y);
  return (rest < 0) != (y < 0) ? rest + y : rest;
}

// x // y. Subtracts the remainder before dividing, because x / y may already be rounded up.
double floor_quotient(double x, double y) {
  const double rest = std::fmod(x, y);
  double exact = (x - rest) / y;
  if (rest != 0.0 && (rest < 0) != (y < 0)) exact -= 1.0;
  if (exact == 0.0) return std::copysign(0.0, x / y);
  const double below = std::floor(exact);
  return exact - below > 0.5 ? below + 1.0 : below;
}

// Compares exactly: a large int may have no equal float.
std::partial_ordering compare(std::int64_t x, double y) {
  if (std::isnan(y)) return std::partial_ordering::unordered;
  if (y >= 9223372036854775808.0) return std::partial_ordering::less;
  if (y < -9223372036854775808.0) return std::partial_ordering::greater;
  const double below = std::floor(y);
  const auto whole_part = static_cast<std::int64_t>(below);
  return x == whole_part && y > below ? std::partial_ordering::less : std::partial_ordering(x <=> whole_part);
}

// x ** y. Throws std::invalid_argument if Python has no float for it.
double real_pow(double base, double exponent) {
  if (base == 0.0 && exponent < 0 && std::isfinite(exponent)) fail("0.0 cannot be raised to a negative power");
  if (base < 0 && std::isfinite(base) && std::isfinite(exponent) && exponent != std::floor(exponent)) {
    fail("the result is complex");
  }
  const double result = std::pow(base, exponent);
  if (std::isinf(result) && std::isfinite(base) && std::isfinite(exponent)) fail("the result is too large for a float");
  return result;
}

std::partial_ordering order(const Arguments& a) {
  if (is_whole(a[0]) && is_whole(a[1])) return whole(a[0]) <=> whole(a[1]);
  if (is_whole(a[0])) return compare(whole(a[0]), real(a[1]));
  if (is_whole(a[1])) return 0 <=> compare(whole(a[1]), real(a[0]));
  return real(a[0]) <=> real(a[1]);
}

std::int64_t shift_of(const IValue& value) {
  if (whole(value) < 0) fail("negative shift count");
  return whole(value);
}

// If one of the two is a float, so is the result, as for symbolic numbers.
IValue pick(const Arguments& a, bool first) {
  const IValue& chosen = first ? a[0] : a[1];
  return is_whole(a[0]) && is_whole(a[1]) ? IValue(whole(chosen)) : IValue(real(chosen));
}

}  // namespace

void fail(const std::string& reason) { throw std::invalid_argument(reason); }

std::int64_t whole(const IValue& value) {
  if (value.isBool()) return value.toBool() ? 1 : 0;
  if (value.isInt()) return value.toInt();
  fail("takes ints, and was given " + value.tagKind());
}

IValue add(const Arguments& a) {
  return arithmetic(
      a, [](std::int64_t x, std::int64_t y, std::int64_t& z) { return __builtin_add_overflow(x, y, &z); },
      [](double x, double y) { return x + y; });
}

IValue sub(const Arguments& a) {
  return arithmetic(
      a, [](std::int64_t x, std::int64_t y, std::int64_t& z) { return __builtin_sub_overflow(x, y, &z); },
      [](double x, double y) { return x - y; });
}

IValue mul(const Arguments& a) {
  return arithmetic(
      a, [](std::int64_t x, std::int64_t y, std::int64_t& z) { return __builtin_mul_overflow(x, y, &z); },
      [](double x, double y) { return x * y; });
}

// Rounds towards minus infinity.
IValue floordiv(const Arguments& a) {
  check_divisor(a[1]);
  return arithmetic(
      a,
      [](std::int64_t x, std::int64_t y, std::int64_t& z) {
        if (x == std::numeric_limits<std::int64_t>::min() && y == -1) return true;
        z = x / y - ((x % y != 0 && (x < 0) != (y < 0)) ? 1 : 0);
        return false;
      },
      [](double x, double y) { return floor_quotient(x, y); });
}

// The result has the sign of the divisor.
IValue mod(const Arguments& a) {
  check_divisor(a[1]);
  return arithmetic(
      a,
      [](std::int64_t x, std::int64_t y, std::int64_t& z) {
        z = y == -1 ? 0 : x % y;
        if (z != 0 && (z < 0) != (y < 0)) z += y;
        return false;
      },
      [](double x, double y) { return remainder(x, y); });
}

IValue truediv(const Arguments& a) {
  check_divisor(a[1]);
  return is_whole(a[0]) && is_whole(a[1]) ? quotient(whole(a[0]), whole(a[1])) : real(a[0]) / real(a[1]);
}

IValue pow(const Arguments& a) {
  if (!is_whole(a[0]) || !is_whole(a[1]) || whole(a[1]) < 0) return real_pow(real(a[0]), real(a[1]));
  std::int64_t result = 1;
  std::int64_t base = whole(a[0]);
  for (std::int64_t exponent = whole(a[1]); exponent > 0; exponent /= 2) {
    if (exponent % 2 != 0 && __builtin_mul_overflow(result, base, &result)) overflow();
    if (exponent > 1 && __builtin_mul_overflow(base, base, &base)) overflow();
  }
  return result;
}

IValue neg(const Arguments& a) { return sub({is_whole(a[0]) ? IValue(std::int64_t{0}) : IValue(-0.0), a[0]}); }
IValue pos(const Arguments& a) { return is_whole(a[0]) ? IValue(whole(a[0])) : IValue(real(a[0])); }

IValue lt(const Arguments& a) { return order(a) < 0; }
IValue le(const Arguments& a) { return order(a) <= 0; }
IValue gt(const Arguments& a) { return order(a) > 0; }
IValue ge(const Arguments& a) { return order(a) >= 0; }
IValue eq(const Arguments& a) { return order(a) == 0; }
IValue ne(const Arguments& a) { return order(a) != 0; }

IValue bit_and(const Arguments& a) {
  if (a[0].isBool() && a[1].isBool()) return a[0].toBool() && a[1].toBool();
  return whole(a[0]) & whole(a[1]);
}

IValue bit_or(const Arguments& a) {
  if (a[0].isBool() && a[1].isBool()) return a[0].toBool() || a[1].toBool();
  return whole(a[0]) | whole(a[1]);
}

IValue lshift(const Arguments& a) {
  const std::int64_t shift = shift_of(a[1]);
  if (whole(a[0]) == 0) return std::int64_t{0};
  if (shift > 63) overflow();
  const auto shifted = static_cast<std::int64_t>(static_cast<std::uint64_t>(whole(a[0])) << shift);
  if (shifted >> shift != whole(a[0])) overflow();
  return shifted;
}

IValue rshift(const Arguments& a) { return whole(a[0]) >> std::min<std::int64_t>(shift_of(a[1]), 63); }

IValue trunc(const Arguments& a) { return is_whole(a[0]) ? whole(a[0]) : to_whole(std::trunc(real(a[0]))); }
IValue floor(const Arguments& a) { return is_whole(a[0]) ? whole(a[0]) : to_whole(std::floor(real(a[0]))); }
IValue ceil(const Arguments& a) { return is_whole(a[0]) ? whole(a[0]) : to_whole(std::ceil(real(a[0]))); }
IValue sym_float(const Arguments& a) { return real(a[0]); }
IValue sym_not(const Arguments& a) { return !truth(a[0]); }
IValue sym_ite(const Arguments& a) { return truth(a[0]) ? a[1] : a[2]; }

IValue sym_sqrt(const Arguments& a) {
  if (real(a[0]) < 0) fail("there is no square root of a negative number");
  return std::sqrt(real(a[0]));
}

IValue sym_max(const Arguments& a) { return pick(a, ge(a).toBool()); }
IValue sym_min(const Arguments& a) { return pick(a, le(a).toBool()); }

}  // namespace rehearse::graph::python
