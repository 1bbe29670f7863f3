// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <compare>
#include <cstdint>

// Where Python's arithmetic differs from C++'s, on plain numbers.
namespace rehearse::graph::python {

double quotient(std::int64_t x, std::int64_t y);  // x / y, rounded once; y is not 0
double remainder(double x, double y);             // x % y: has the sign of y
double floor_quotient(double x, double y);        // x // y
double real_pow(double base, double exponent);  // x ** y; throws std::invalid_argument where Python has no float for it
std::partial_ordering compare(std::int64_t x, double y);  // by what they are: a large int has no equal float

}  // namespace rehearse::graph::python
