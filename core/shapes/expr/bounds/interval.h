// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include <rehearse_internal/shapes/range.h>

// Arithmetic of ranges. Each result contains all values that the operation can have. The least and greatest 64-bit
// numbers count as infinite. A bound that does not fit into 64 bits also becomes infinite, because an expression with
// such a value would throw OverflowError.
namespace rehearse::shapes::interval {

Range add(const Range& left, const Range& right);
Range multiply(const Range& left, const Range& right);
Range power(const Range& base, std::int64_t exponent);
Range floordiv(const Range& dividend, const Range& divisor);
Range mod(const Range& dividend, const Range& divisor);

std::int64_t negate(std::int64_t bound);
std::int64_t ceildiv_lower(std::int64_t lower, std::int64_t divisor);   // divisor > 0
std::int64_t floordiv_upper(std::int64_t upper, std::int64_t divisor);  // divisor > 0

}  // namespace rehearse::shapes::interval
