// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>

#include <gtest/gtest.h>

namespace rehearse {

// What SCOPED_TRACE makes: in a rank a trace of that rank (and of its thread) alone; elsewhere GoogleTest's own.
//
// GoogleTest keeps its traces for each thread, and ranks share one: there, an assertion would be told with the traces
// of whatever ranks were inside of such a scope, and leaving a scope would take away the newest one, whosever that is.
class RankTrace {
 public:
  template <class Message>
  RankTrace(const char* file, int line, const Message& message) : RankTrace(file, line, text_of(message)) {}
  RankTrace(const char* file, int line, std::string message);
  RankTrace(const RankTrace&) = delete;
  RankTrace& operator=(const RankTrace&) = delete;
  ~RankTrace();

 private:
  template <class Message>
  static std::string text_of(const Message& message) {
    return (::testing::Message() << message).GetString();
  }

  std::optional<::testing::ScopedTrace> outside_;
};

}  // namespace rehearse

#undef SCOPED_TRACE
#define SCOPED_TRACE(message) \
  const ::rehearse::RankTrace GTEST_CONCAT_TOKEN_(gtest_trace_, __LINE__)(__FILE__, __LINE__, (message))
