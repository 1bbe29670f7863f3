// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

namespace rehearse::bench {

// Runs this program again, as a process that nothing has warmed or filled, with `arguments`, and returns the numbers
// that it prints. Throws std::runtime_error when it cannot be started, does not end with 0, or prints anything else.
std::vector<double> numbers_of_fresh_process(const std::vector<std::string>& arguments);

}  // namespace rehearse::bench
