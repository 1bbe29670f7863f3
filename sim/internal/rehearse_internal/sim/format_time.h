// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <rehearse/exec/time.h>

namespace rehearse::sim {

// Formats a time for people, in the largest unit (up to seconds) in which the number is at least 1, or else in
// nanoseconds. Cuts the number off after three decimals and does not round: "1.203 ms", "640 ns", "0 ns", "90 s".
std::string format_time(VirtualTime time);

}  // namespace rehearse::sim
