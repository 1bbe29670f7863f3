// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "parity_case.h"

namespace rehearse::parity {

// Starts this executable again, as one process per rank, with a real c10d::ProcessGroupGloo over the loopback
// interface. Each process runs all cases of `suite`, with `more_environment` ("NAME=value") in its environment. Returns
// [rank][case]. Blocks until all have ended. Throws std::runtime_error with a process's output if that process fails.
std::vector<std::vector<Result>> run_on_gloo(const std::string& suite, int ranks,
                                             const std::vector<std::string>& more_environment = {});

// Call this function in main(). If run_on_gloo() started this process, the function does the work and returns the exit
// code. Otherwise it returns nothing.
std::optional<int> run_as_gloo_rank(int argc, char** argv);

// The cases of a suite. The test defines this function.
std::vector<Case> cases_of(const std::string& suite);

}  // namespace rehearse::parity
