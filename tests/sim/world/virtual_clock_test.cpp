// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/sim/virtual_clock.h>

#include <gtest/gtest.h>

namespace rehearse::sim {
namespace {

TEST(VirtualClock, Advance_JumpsAndNeverGoesBack) {
  VirtualClock clock;
  EXPECT_EQ(clock.now(), kTimeZero);
  clock.advance_to(kTimeZero + std::chrono::hours(30));
  EXPECT_EQ(clock.now(), kTimeZero + std::chrono::hours(30));
  clock.advance_to(kTimeZero + std::chrono::hours(29));
  EXPECT_EQ(clock.now(), kTimeZero + std::chrono::hours(30));
}

}  // namespace
}  // namespace rehearse::sim
