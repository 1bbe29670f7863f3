// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <rehearse/sim/world.h>

namespace rehearse {

// Ends a rank in whose body an ASSERT_* failed or GTEST_SKIP ran.
class AssertionEndedRank : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Collects the results of GoogleTest's assertions while a world runs, and makes a rank's fatal failure end the world.
// Construct it right before World::run(), and run the body from wrap(). Call forward() once the Capture is gone.
//
// World may run all bodies a second time to explain a failure. Only results of the first time count, including those of
// a rank that a fault has restarted.
class RankAssertions {
 public:
  explicit RankAssertions(const WorldOptions& options);

  // This object must live as long as the result is used.
  World::Body wrap(World::Body body);

  // While a Capture exists, the RankAssertions get the results of this thread's assertions.
  class Capture : public ::testing::ScopedFakeTestPartResultReporter {
   public:
    explicit Capture(RankAssertions& assertions)
        : ScopedFakeTestPartResultReporter(INTERCEPT_ONLY_CURRENT_THREAD, &unused_), assertions_(assertions) {}
    void ReportTestPartResult(const ::testing::TestPartResult& result) override { assertions_.take(result); }

   private:
    ::testing::TestPartResultArray unused_;
    RankAssertions& assertions_;
  };

  bool failed() const noexcept;

  // Passes the results on to GoogleTest, each with its own file and line. `footer` (if any) ends the last failure.
  void forward(std::string_view footer = {}) const;

 private:
  struct Rank {
    int runs = 0;            // how often its body has started
    bool explains = false;   // the body runs again to explain a failure, and not because a fault restarted the rank
    std::string left_early;  // the last fatal failure or GTEST_SKIP of this run; empty: none
  };

  void take(const ::testing::TestPartResult& result);

  std::uint64_t seed_;
  std::vector<Rank> ranks_;
  std::vector<::testing::TestPartResult> found_;
};

}  // namespace rehearse
