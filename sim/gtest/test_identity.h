// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace rehearse {

// Which check() this is.
struct CheckIdentity {
  std::string name;     // "Suite.Test", "Suite.Test#2" for the test's second check; "check" outside of tests
  std::string folder;   // the name, without characters that part paths
  std::string command;  // runs the test alone: "./my_test --gtest_filter=Suite.Test"
};

// Counts the running test's checks; call it once for each.
CheckIdentity next_check();

}  // namespace rehearse
