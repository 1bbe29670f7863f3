// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/exec/throw_site.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse_internal/exec/executor.h>
#include <rehearse_internal/exec/this_rank.h>

#include "core/call_site/user_frame.h"
#include "core/exec/no_rank_state.h"

// This code is outside of our namespaces, because without line tables, user_frames() leaves out all code inside of
// them.
namespace {

using namespace rehearse::exec;
using testing::HasSubstr;

class FirstOracle final : public rehearse::Oracle {
 public:
  std::uint32_t choose(rehearse::ChoiceKind, std::span<const std::uint32_t>, std::span<const std::uint32_t>) override {
    return 0;
  }
};

class JumpingClock final : public Clock {
 public:
  rehearse::VirtualTime now() const noexcept override { return now_; }
  void advance_to(rehearse::VirtualTime time) noexcept override { now_ = std::max(now_, time); }

 private:
  rehearse::VirtualTime now_{};
};

class KeepRunning final : public FailureSink {
 public:
  Verdict on_rank_failure(const RankFailure&) override { return Verdict::keep_running; }
};

RunOutcome run(int ranks, const std::function<void(int)>& body) {
  FirstOracle oracle;
  rehearse::DecisionLog log;
  rehearse::Decisions decisions(oracle, log);
  JumpingClock clock;
  NoRankState state;
  KeepRunning sink;
  RankExecutor executor({.ranks = ranks}, decisions, clock, state, sink);
  return executor.run(body);
}

// Runs `body` and expects every rank to return, because a rank that throws skips its checks.
void run_to_the_end(int ranks, const std::function<void(int)>& body) {
  EXPECT_EQ(run(ranks, body).ranks, std::vector<RankEnd>(static_cast<std::size_t>(ranks), RankEnd::returned));
}

std::string where_thrown(const std::function<void()>& body) {
  try {
    body();
  } catch (...) {
    return user_frame(last_throw()).function;
  }
  return "nothing was thrown";
}

[[gnu::noinline]] void throws_here() { throw std::runtime_error("no"); }
[[gnu::noinline]] void throws_elsewhere() { throw std::logic_error("no"); }
[[gnu::noinline]] void library_throws(std::vector<int>& empty) { empty.at(3) = 1; }

struct ThrowsWhileUnwinding {
  ~ThrowsWhileUnwinding() {
    try {
      throws_elsewhere();
    } catch (const std::logic_error&) {
    }
  }
};

struct YieldsWhileUnwinding {
  ~YieldsWhileUnwinding() { this_rank::yield(); }
};

TEST(ThrowSite, OutsideOfFibers_IsEmpty) {
  try {
    throws_here();
  } catch (...) {
    EXPECT_TRUE(last_throw().empty());
  }
}

TEST(ThrowSite, OutsideOfFibers_IsThereWhereItIsKept) {
  {
    const KeepThrowSites keep;
    EXPECT_THAT(where_thrown(throws_here), HasSubstr("throws_here"));
  }
  EXPECT_EQ(where_thrown(throws_here), "");
}

TEST(ThrowSite, OutsideOfCatchBlocks_IsEmpty) {
  run_to_the_end(1, [](int) {
    where_thrown(throws_here);
    EXPECT_TRUE(last_throw().empty());
  });
}

TEST(ThrowSite, InACatchBlock_IsWhereItWasThrown) {
  run_to_the_end(1, [](int) { EXPECT_THAT(where_thrown(throws_here), HasSubstr("throws_here")); });
}

TEST(ThrowSite, ThrowInTheStandardLibrary_IsTheUsersCall) {
  run_to_the_end(1, [](int) {
    EXPECT_THAT(where_thrown([] {
                  std::vector<int> empty;
                  library_throws(empty);
                }),
                HasSubstr("library_throws"));
  });
}

TEST(ThrowSite, Rethrow_DoesNotChangeIt) {
  run_to_the_end(1, [](int) {
    std::exception_ptr kept;
    try {
      throws_here();
    } catch (...) {
      kept = std::current_exception();
    }
    EXPECT_THAT(where_thrown([&] { std::rethrow_exception(kept); }), HasSubstr("throws_here"));
  });
}

// Rethrows an exception that was made but never thrown, as a future's error may be. It may have the address of an
// earlier exception. The place where the earlier exception was thrown must not be reported.
TEST(ThrowSite, RethrowOfWhatWasNeverThrown_IsNotWhereAnotherWas) {
  run_to_the_end(1, [](int) {
    for (int k = 0; k < 10; ++k) {
      EXPECT_THAT(where_thrown(throws_here), HasSubstr("throws_here"));
      const auto where =
          where_thrown([] { std::rethrow_exception(std::make_exception_ptr(std::runtime_error("no"))); });
      EXPECT_THAT(where, HasSubstr("RethrowOfWhatWasNeverThrown"));
      EXPECT_THAT(where, testing::Not(HasSubstr("throws_here")));
    }
  });
}

TEST(ThrowSite, ThrowDuringUnwinding_DoesNotChangeIt) {
  run_to_the_end(1, [](int) {
    EXPECT_THAT(where_thrown([] {
                  const ThrowsWhileUnwinding cleaner;
                  throws_here();
                }),
                HasSubstr("throws_here"));
  });
}

TEST(ThrowSite, ThrowOfAnotherRankMeanwhile_DoesNotChangeIt) {
  run_to_the_end(2, [](int rank) {
    EXPECT_THAT(where_thrown([&] {
                  const YieldsWhileUnwinding cleaner;
                  rank == 0 ? throws_here() : throws_elsewhere();
                }),
                HasSubstr(rank == 0 ? "throws_here" : "throws_elsewhere"));
  });
}

// A destructor that runs because of an exception notes here what exception_under_way() returns.
std::string seen_under_way;
struct AsksWhileUnwinding {
  ~AsksWhileUnwinding() {
    const auto under_way = exception_under_way();
    seen_under_way = under_way ? user_frame(under_way->thrown_at).function : "nothing";
    if (!under_way) return;
    try {
      std::rethrow_exception(under_way->error);
    } catch (const std::exception& error) {
      seen_under_way += std::string(" ") + error.what();
    }
  }
};

TEST(ThrowSite, UnderWay_IsTheExceptionForWhichDestructorsRun) {
  run_to_the_end(2, [](int) {
    {
      const AsksWhileUnwinding asks;
    }
    EXPECT_EQ(seen_under_way, "nothing");
    where_thrown([] {
      const AsksWhileUnwinding asks;
      throws_here();
    });
    EXPECT_THAT(seen_under_way, testing::MatchesRegex(".*throws_here.* no"));
    where_thrown([] {
      const AsksWhileUnwinding asks;
      const ThrowsWhileUnwinding cleaner;
      const YieldsWhileUnwinding yields;
      throws_here();
    });
    EXPECT_THAT(seen_under_way, testing::MatchesRegex(".*throws_here.* no"));
  });
}

TEST(ThrowSite, UnderWayOnceMore_IsTheOneThatWasRethrown) {
  run_to_the_end(1, [](int) {
    where_thrown([] {
      const AsksWhileUnwinding asks;
      try {
        throws_here();
      } catch (...) {
        where_thrown(throws_elsewhere);
        throw;
      }
    });
    EXPECT_THAT(seen_under_way, testing::MatchesRegex(".*throws_here.* no"));
    std::exception_ptr kept;
    try {
      throws_elsewhere();
    } catch (...) {
      kept = std::current_exception();
    }
    where_thrown(throws_here);
    where_thrown([&] {
      const AsksWhileUnwinding asks;
      std::rethrow_exception(kept);
    });
    EXPECT_THAT(seen_under_way, testing::MatchesRegex(".*throws_elsewhere.* no"));
  });
}

TEST(ThrowSite, ExceptionThatLeavesARank_IsInItsFailure) {
  const RunOutcome outcome = run(2, [](int rank) {
    if (rank == 1) throws_here();
  });
  ASSERT_EQ(outcome.failures.size(), 1u);
  EXPECT_THAT(user_frame(outcome.failures[0].thrown_at).function, HasSubstr("throws_here"));
}

}  // namespace
