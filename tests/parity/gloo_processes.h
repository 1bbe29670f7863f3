// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "parity_case.h"

namespace rehearse::parity {

// One operating-system process for each rank, this executable started again, with a real c10d::ProcessGroupGloo over
// the loopback interface. Each process runs all cases of `suite`, with `more_environment` ("NAME=value") in its
// environment; gives [rank][case].
// Blocks until all have ended. Throws std::runtime_error with a process's output when it fails.
std::vector<std::vector<Result>> run_on_gloo(const std::string& suite, int ranks,
                                             const std::vector<std::string>& more_environment = {});

// In main(): if this process was started by run_on_gloo(), does its work and gives the exit code.
std::optional<int> run_as_gloo_rank(int argc, char** argv);

// The cases of a name; defined by the test.
std::vector<Case> cases_of(const std::string& suite);

}  // namespace rehearse::parity
