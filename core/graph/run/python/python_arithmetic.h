// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <compare>
#include <cstdint>

// Functions for which Python's arithmetic on plain numbers differs from C++'s.
namespace rehearse::graph::python {

double quotient(std::int64_t x, std::int64_t y);          // x / y, rounded once; y is not 0
double remainder(double x, double y);                     // x % y: has the sign of y
double floor_quotient(double x, double y);                // x // y
double real_pow(double base, double exponent);            // x ** y; std::invalid_argument if Python has no float for it
std::partial_ordering compare(std::int64_t x, double y);  // compares exactly: a large int may have no equal float

}  // namespace rehearse::graph::python
