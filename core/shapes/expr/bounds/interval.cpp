// SPDX-License-Identifier: BSD-3-Clause
#include "shapes/expr/bounds/interval.h"

#include <algorithm>
#include <array>

#include "shapes/expr/checked.h"

namespace rehearse::shapes::interval {
namespace {

constexpr std::int64_t kBelow = Range::kUnboundedBelow;
constexpr std::int64_t kAbove = Range::kUnboundedAbove;

__extension__ using Wide = __int128;

std::int64_t clamped(Wide value) { return static_cast<std::int64_t>(std::clamp<Wide>(value, kBelow, kAbove)); }

bool infinite(std::int64_t bound) { return bound == kBelow || bound == kAbove; }

std::int64_t add_bounds(std::int64_t left, std::int64_t right, std::int64_t infinity) {
  return left == infinity || right == infinity ? infinity : clamped(static_cast<Wide>(left) + right);
}

std::int64_t multiply_bounds(std::int64_t left, std::int64_t right) {
  if (left == 0 || right == 0) return 0;
  if (infinite(left) || infinite(right)) return (left < 0) == (right < 0) ? kAbove : kBelow;
  return clamped(static_cast<Wide>(left) * right);
}

// Requires divisor > 0. Both arguments may be infinite.
std::int64_t divide_bounds(std::int64_t dividend, std::int64_t divisor) {
  if (infinite(dividend)) return dividend;
  if (infinite(divisor)) return dividend < 0 ? -1 : 0;
  return checked::floordiv(dividend, divisor);
}

Range negate(const Range& range) { return {interval::negate(range.upper), interval::negate(range.lower)}; }

Range least_and_greatest(const std::array<std::int64_t, 4>& corners) {
  const auto [least, greatest] = std::minmax_element(corners.begin(), corners.end());
  return {*least, *greatest};
}

}  // namespace

std::int64_t negate(std::int64_t bound) {
  if (bound == kBelow) return kAbove;
  return bound == kAbove ? kBelow : -bound;
}

std::int64_t ceildiv_lower(std::int64_t lower, std::int64_t divisor) {
  return infinite(lower) ? lower : -checked::floordiv(-lower, divisor);
}

std::int64_t floordiv_upper(std::int64_t upper, std::int64_t divisor) {
  return infinite(upper) ? upper : checked::floordiv(upper, divisor);
}

Range add(const Range& left, const Range& right) {
  return {add_bounds(left.lower, right.lower, kBelow), add_bounds(left.upper, right.upper, kAbove)};
}

Range multiply(const Range& left, const Range& right) {
  return least_and_greatest({multiply_bounds(left.lower, right.lower), multiply_bounds(left.lower, right.upper),
                             multiply_bounds(left.upper, right.lower), multiply_bounds(left.upper, right.upper)});
}

Range power(const Range& base, std::int64_t exponent) {
  constexpr std::int64_t kExponentMax = 64;  // larger exponents overflow 64 bits for all bases but -1, 0 and 1
  Range result{1, 1};
  for (std::int64_t i = 0; i < std::min(exponent, kExponentMax + exponent % 2); ++i) result = multiply(result, base);
  if (exponent % 2 == 0) result.lower = base.contains(0) ? 0 : std::max<std::int64_t>(result.lower, 1);
  return result;
}

Range floordiv(const Range& dividend, const Range& divisor) {
  if (divisor.lower <= 0 && divisor.upper >= 0) return {};
  if (divisor.upper < 0) return floordiv(negate(dividend), negate(divisor));
  return least_and_greatest({divide_bounds(dividend.lower, divisor.lower), divide_bounds(dividend.lower, divisor.upper),
                             divide_bounds(dividend.upper, divisor.lower),
                             divide_bounds(dividend.upper, divisor.upper)});
}

Range mod(const Range& dividend, const Range& divisor) {
  if (divisor.lower <= 0 && divisor.upper >= 0) return {};
  if (divisor.upper < 0) return negate(mod(negate(dividend), negate(divisor)));
  if (dividend.lower >= 0 && dividend.upper < divisor.lower) return dividend;
  const std::int64_t greatest = divisor.upper == kAbove ? kAbove : divisor.upper - 1;
  return {0, dividend.lower >= 0 ? std::min(greatest, dividend.upper) : greatest};
}

}  // namespace rehearse::shapes::interval
