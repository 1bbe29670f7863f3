// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace rehearse::shapes::checked {

// Arithmetic that throws OverflowError instead of wrapping around. Division and remainder are Python's; they throw
// DivisionByZero.
std::int64_t add(std::int64_t left, std::int64_t right);
std::int64_t subtract(std::int64_t left, std::int64_t right);
std::int64_t multiply(std::int64_t left, std::int64_t right);
std::int64_t negate(std::int64_t value);
std::int64_t floordiv(std::int64_t dividend, std::int64_t divisor);
std::int64_t mod(std::int64_t dividend, std::int64_t divisor);
std::int64_t power(std::int64_t base, std::int64_t exponent);  // exponent >= 0

}  // namespace rehearse::shapes::checked
