// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/sim/format_time.h>

#include <gtest/gtest.h>

namespace rehearse::sim {
namespace {

std::string shown(std::int64_t nanoseconds) { return format_time(kTimeZero + VirtualDuration(nanoseconds)); }

TEST(FormatTime, EachUnit_AtLeastOneAndThreeDecimalsAtMost) {
  EXPECT_EQ(shown(0), "0 ns");
  EXPECT_EQ(shown(999), "999 ns");
  EXPECT_EQ(shown(1'000), "1 us");
  EXPECT_EQ(shown(1'500), "1.5 us");
  EXPECT_EQ(shown(999'999), "999.999 us");
  EXPECT_EQ(shown(1'203'000), "1.203 ms");
  EXPECT_EQ(shown(1'000'999), "1 ms");
  EXPECT_EQ(shown(1'020'000'000), "1.02 s");
  EXPECT_EQ(shown(90'000'000'000), "90 s");
}

}  // namespace
}  // namespace rehearse::sim
