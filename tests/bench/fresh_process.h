// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

namespace rehearse::bench {

// Runs this program again with `arguments`, as a process without warm caches or used memory. Returns the numbers that
// it prints. Throws std::runtime_error if the process does not start, ends with a status other than 0, or prints
// anything but numbers.
std::vector<double> numbers_of_fresh_process(const std::vector<std::string>& arguments);

}  // namespace rehearse::bench
