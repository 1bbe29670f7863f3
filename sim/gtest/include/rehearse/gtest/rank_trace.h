// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>

#include <gtest/gtest.h>

namespace rehearse {

// The object behind SCOPED_TRACE. In a rank, the trace applies only to assertions of the fiber that made the trace: the
// rank's own fiber, or a thread that the rank started. Outside of ranks, it is GoogleTest's own trace.
//
// GoogleTest keeps traces by thread, and all ranks share one thread. With GoogleTest's own traces, an assertion would
// show the traces of all ranks, and leaving a scope would remove the newest trace, whichever rank made it.
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
