// SPDX-License-Identifier: BSD-3-Clause
#include "cli/terminal/progress.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

// Contract: a terminal gets one line, redrawn at most ten times a second. A log gets a line for the first step and for
// each tenth of the steps. If the number of steps is not known, the log gets a line whenever the step has doubled. In a
// sweep, the log gets a line every five seconds.
namespace rehearse::cli {
namespace {

using ::testing::ElementsAre;

struct Screen {
  std::chrono::nanoseconds now{0};
  std::vector<std::string> written;
  Progress on(bool terminal) {
    return Progress(terminal, [this](std::string_view text) { written.emplace_back(text); }, [this] { return now; });
  }
};

TEST(Progress, Log_GetsALineForEachTenth) {
  Screen screen;
  auto progress = screen.on(false);
  for (int step = 1; step <= 1000; ++step) {
    screen.now += std::chrono::milliseconds(100);
    progress.show(step, 1000, "loss 2.5");
  }
  progress.clear();
  ASSERT_EQ(screen.written.size(), 11u);
  EXPECT_EQ(screen.written[0], "1/1000 0%  10.0/s  1 min 40 s left  loss 2.5\n");
  EXPECT_EQ(screen.written[5], "500/1000 50%  10.0/s  50 s left  loss 2.5\n");
  EXPECT_EQ(screen.written[10], "1000/1000 100%  10.0/s  loss 2.5\n");
}

TEST(Progress, LogOfALongWork_GetsALineEveryFewSeconds) {
  Screen screen;
  Progress progress(
      false, [&](std::string_view text) { screen.written.emplace_back(text); }, [&] { return screen.now; },
      Progress::Lines::seconds);
  for (int done = 1; done <= 12; ++done) {
    screen.now += std::chrono::seconds(1);
    progress.show(done, 100, "no failures");
  }
  progress.clear();
  EXPECT_THAT(screen.written, ElementsAre("5/100 5%  1.0/s  1 min 35 s left  no failures\n",
                                          "10/100 10%  1.0/s  1 min 30 s left  no failures\n"));
}

TEST(Progress, LogWithoutATotal_GetsALineForEachDoubling) {
  Screen screen;
  auto progress = screen.on(false);
  for (int step = 1; step <= 10; ++step) {
    screen.now += std::chrono::seconds(2);
    progress.show(step, 0, "");
  }
  EXPECT_THAT(screen.written, ElementsAre("1  0.5/s\n", "2  0.5/s\n", "4  0.5/s\n", "8  0.5/s\n"));
}

TEST(Progress, Terminal_RedrawsOneLineTenTimesASecond) {
  Screen screen;
  auto progress = screen.on(true);
  for (int step = 1; step <= 100; ++step) {
    screen.now += std::chrono::milliseconds(10);
    progress.show(step, 100, "");
  }
  progress.clear();
  ASSERT_EQ(screen.written.size(), 12u);
  EXPECT_EQ(screen.written.front(), "\r\033[K1/100 1%  100/s  1.0 s left");
  EXPECT_EQ(screen.written[10], "\r\033[K100/100 100%  100/s");
  EXPECT_EQ(screen.written.back(), "\r\033[K");
}

TEST(Progress, NothingShown_NothingToClear) {
  Screen screen;
  screen.on(true).clear();
  EXPECT_THAT(screen.written, ElementsAre());
}

// On a rank's fiber the standard clocks are virtual, and a rate computed from them would mean nothing.
TEST(Progress, RealTime_MovesOn) {
  const auto start = real_time();
  while (real_time() == start) {
  }
  EXPECT_GT(real_time(), start);
}

}  // namespace
}  // namespace rehearse::cli

// This binary links rehearse::main for the sources of the command, but must not take main() from it.
int main(int argc, char** argv) {
  ::testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
