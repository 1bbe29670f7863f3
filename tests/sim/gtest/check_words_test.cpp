// SPDX-License-Identifier: BSD-3-Clause
// Contract: the texts that check() adds to the verdict: traces of the rank that failed, and remarks of an OK run.
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rehearse/rehearse.h>

#include "check_helpers.h"

namespace rehearse {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// GoogleTest keeps its traces per thread, and ranks share one thread.
TEST(CheckWords, ScopedTrace_IsTheRanksOwn) {
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    const auto failures = failures_of([seed] {
      SCOPED_TRACE("around the world");
      check({.ranks = 3, .seed = seed}, [](RankContext& ctx) {
        SCOPED_TRACE("body of rank " + std::to_string(ctx.rank()));
        for (int step = 0; step < 2; ++step) {
          SCOPED_TRACE(step);
          ctx.group().barrier()->wait();
          if (ctx.rank() == 1) {
            EXPECT_EQ(step, 0);
          }
        }
        std::thread([&ctx] { EXPECT_NE(ctx.rank(), 2) << "in a thread"; }).join();
      });
    });
    ASSERT_EQ(failures.size(), 2u);
    const bool thread_first = message(failures[0]).find("in a thread") != std::string::npos;
    const auto of_step = message(failures[thread_first ? 1 : 0]);
    const auto of_thread = message(failures[thread_first ? 0 : 1]);
    const auto inner = of_step.find("check_words_test.cpp:27: 1\n");
    const auto outer = of_step.find("check_words_test.cpp:25: body of rank 1");
    ASSERT_NE(inner, std::string::npos) << of_step;
    ASSERT_NE(outer, std::string::npos) << of_step;
    EXPECT_LT(inner, outer);
    EXPECT_THAT(of_step, Not(HasSubstr("body of rank 0")));
    EXPECT_THAT(of_step, HasSubstr(": around the world"));
    EXPECT_EQ(of_step.find("around the world"), of_step.rfind("around the world"));
    EXPECT_THAT(of_thread, Not(HasSubstr("body of rank")));
  }
}

TEST(CheckWords, RemarkUnderOk_IsPrintedOnStderr) {
  testing::internal::CaptureStderr();
  check({.ranks = 2}, [](RankContext& ctx) { ctx.group().barrier(); });
  EXPECT_THAT(
      testing::internal::GetCapturedStderr(),
      StartsWith(
          "rehearse: CheckWords.RemarkUnderOk_IsPrintedOnStderr: nobody waited for barrier #1 on group \"world\" of "
          "ranks 0-1 at check_words_test.cpp:"));
}

}  // namespace
}  // namespace rehearse
