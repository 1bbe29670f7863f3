// SPDX-License-Identifier: BSD-3-Clause
#include "process/session/silence.h"

#include <gtest/gtest.h>

// Contract: Silence counts only time in which this process ran, and remembers for a while how long this process was
// stopped.
namespace rehearse::real {
namespace {

using namespace std::chrono_literals;

class SilenceOfAPeer : public ::testing::Test {
 protected:
  void look_until(VirtualDuration end) {
    for (; now_ < end; now_ += 100ms) silence_.look(VirtualTime{now_ + 1s});
  }

  Silence silence_{100ms, 1s};
  VirtualDuration now_{};
};

TEST_F(SilenceOfAPeer, IsTooLongAfterOneAndAHalfCheckTimeouts) {
  look_until(1600ms);
  EXPECT_EQ(silence_.length(), 1500ms);
  EXPECT_TRUE(silence_.is_too_long());
  silence_.heard();
  EXPECT_FALSE(silence_.is_too_long());
}

TEST_F(SilenceOfAPeer, TimeInWhichThisProcessWasStopped_DoesNotCount) {
  look_until(500ms);
  now_ += 13s;
  look_until(14s);
  EXPECT_EQ(silence_.length(), 400ms + 200ms + 400ms);
  EXPECT_FALSE(silence_.is_too_long());
  EXPECT_EQ(silence_.away(), 13s - 100ms);
  look_until(17s);
  EXPECT_EQ(silence_.away(), 0s);
}

}  // namespace
}  // namespace rehearse::real
