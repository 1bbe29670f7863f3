// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <rehearse/exec/time.h>

namespace rehearse::sim {

// Formats a time for people: the largest unit that leaves a number of at least 1, and at most three decimals, cut off
// instead of rounded: "1.203 ms", "640 ns", "0 ns", "90 s".
std::string format_time(VirtualTime time);

}  // namespace rehearse::sim
