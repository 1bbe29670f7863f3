// SPDX-License-Identifier: BSD-3-Clause
#include "test_identity.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace rehearse {
namespace {

// Returns 1 for the first check of a test. If a test runs again (--gtest_repeat), the count starts over.
int count_check(const ::testing::TestInfo* test) {
  static std::pair<const ::testing::TestInfo*, ::testing::TimeInMillis> counted;
  static int count = 0;
  const std::pair running{test, test->result()->start_timestamp()};
  if (running != counted) count = 0;
  counted = running;
  return ++count;
}

}  // namespace

CheckIdentity next_check() {
  const std::string self = program_invocation_name;
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  if (test == nullptr) return {"check", "check", self};
  CheckIdentity identity;
  identity.name = fmt::format("{}.{}", test->test_suite_name(), test->name());
  identity.command = fmt::format("{} --gtest_filter={}", self, identity.name);
  const int number = count_check(test);
  if (number > 1) identity.name += fmt::format("#{}", number);
  identity.folder = identity.name;
  std::replace(identity.folder.begin(), identity.folder.end(), '/', '_');
  return identity;
}

}  // namespace rehearse
