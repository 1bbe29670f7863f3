// SPDX-License-Identifier: BSD-3-Clause
#include "shapes/expr/checked.h"

#include <limits>
#include <string>

#include <rehearse/shapes/errors.h>

namespace rehearse::shapes::checked {
namespace {

[[noreturn]] void overflow(std::int64_t left, const char* sign, std::int64_t right) {
  throw OverflowError("64 bits do not hold " + std::to_string(left) + sign + std::to_string(right) +
                      " in a symbolic size");
}

void require_divisor(std::int64_t dividend, std::int64_t divisor) {
  if (divisor == 0) throw DivisionByZero("a symbolic size is divided by zero: " + std::to_string(dividend) + " by 0");
}

}  // namespace

std::int64_t add(std::int64_t left, std::int64_t right) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(left, right, &sum)) overflow(left, " + ", right);
  return sum;
}

std::int64_t subtract(std::int64_t left, std::int64_t right) {
  std::int64_t difference = 0;
  if (__builtin_sub_overflow(left, right, &difference)) overflow(left, " - ", right);
  return difference;
}

std::int64_t multiply(std::int64_t left, std::int64_t right) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(left, right, &product)) overflow(left, " * ", right);
  return product;
}

std::int64_t negate(std::int64_t value) {
  if (value == std::numeric_limits<std::int64_t>::min()) overflow(0, " - ", value);
  return -value;
}

std::int64_t floordiv(std::int64_t dividend, std::int64_t divisor) {
  require_divisor(dividend, divisor);
  if (divisor == -1) return negate(dividend);  // the smallest number / -1 would overflow
  const std::int64_t quotient = dividend / divisor;
  const bool rounded_up = dividend % divisor != 0 && (dividend < 0) != (divisor < 0);
  return rounded_up ? quotient - 1 : quotient;
}

std::int64_t mod(std::int64_t dividend, std::int64_t divisor) {
  require_divisor(dividend, divisor);
  if (divisor == -1) return 0;  // the smallest number % -1 would overflow
  const std::int64_t remainder = dividend % divisor;
  return remainder != 0 && (remainder < 0) != (divisor < 0) ? remainder + divisor : remainder;
}

std::int64_t power(std::int64_t base, std::int64_t exponent) {
  // With 0, 1 or -1, the loop below could run for very long. With any other base, the loop ends, or throws because of
  // an overflow, within 64 steps.
  if (base == 0 || base == 1) return exponent == 0 ? 1 : base;
  if (base == -1) return exponent % 2 == 0 ? 1 : -1;
  std::int64_t result = 1;
  for (; exponent > 0; --exponent) result = multiply(result, base);
  return result;
}

}  // namespace rehearse::shapes::checked
