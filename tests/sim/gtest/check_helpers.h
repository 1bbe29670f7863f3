// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

namespace rehearse {

// Sets an environment variable in its scope.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) { setenv(name, value.c_str(), 1); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

// The failures that `body` would report to GoogleTest.
template <class Body>
std::vector<::testing::TestPartResult> failures_of(const Body& body) {
  ::testing::TestPartResultArray caught;
  {
    ::testing::ScopedFakeTestPartResultReporter reporter(
        ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &caught);
    body();
  }
  std::vector<::testing::TestPartResult> failures;
  for (int i = 0; i < caught.size(); ++i) failures.push_back(caught.GetTestPartResult(i));
  return failures;
}

// The message without trailing line ends. GoogleTest adds a line end since version 1.13.
inline std::string message(const ::testing::TestPartResult& result) {
  std::string text = result.message();
  text.erase(text.find_last_not_of('\n') + 1);
  return text;
}

}  // namespace rehearse
