// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace rehearse {

struct CheckIdentity {
  std::string name;     // "Suite.Test", "Suite.Test#2" for the test's second check; "check" outside tests
  std::string folder;   // the name without characters that separate paths
  std::string command;  // runs the test alone: "./my_test --gtest_filter=Suite.Test"
};

// Counts the running test's checks: call it once for each check.
CheckIdentity next_check();

}  // namespace rehearse
