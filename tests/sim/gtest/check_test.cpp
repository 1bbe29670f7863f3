// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>

#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>
#include <rehearse/rehearse.h>
#include <rehearse_internal/exec/this_rank.h>
#include <rehearse_internal/sim/run_log.h>

#include "check_helpers.h"
#include "cli/process.h"

// Contract: unless all is well, check() fails the test at the caller's line. The failure names rank and seed, and ends
// with a line that repeats the run. If an assertion in a rank fails before the world has its verdict, the failure is
// never lost, and has rank and time.
namespace rehearse {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

void add_ranks(RankContext& ctx) {
  auto value = at::full({1}, static_cast<double>(ctx.rank()));
  ctx.group().allreduce(value)->wait();
  EXPECT_EQ(value.item<double>(), ctx.size() * (ctx.size() - 1) / 2);
}

void skip_one(RankContext& ctx) {
  if (ctx.rank() != 1) ctx.group().barrier()->wait();
}

TEST(Check, GoodBody_AddsNothing) { check({.ranks = 4}, add_ranks); }

TEST(Check, Deadlock_FailsAtTheCallersLine) {
  std::filesystem::remove_all("rehearse-out/Check.Deadlock_FailsAtTheCallersLine");
  const auto failures = failures_of([] { check({.ranks = 3, .seed = 26}, skip_one); });
  const int line = __LINE__ - 1;
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_TRUE(failures[0].nonfatally_failed());
  EXPECT_THAT(failures[0].file_name(), EndsWith("check_test.cpp"));
  EXPECT_EQ(failures[0].line_number(), line);
  EXPECT_THAT(message(failures[0]), StartsWith("DEADLOCK: barrier #1 on group \"world\""));
  EXPECT_THAT(message(failures[0]), HasSubstr("\nreplay: REHEARSE_SEED=0x1a "));
  EXPECT_THAT(message(failures[0]), EndsWith(" --gtest_filter=Check.Deadlock_FailsAtTheCallersLine"));
  const auto log = sim::read_run_log("rehearse-out/Check.Deadlock_FailsAtTheCallersLine/run.rlog");
  EXPECT_EQ(log.program, "Check.Deadlock_FailsAtTheCallersLine");
  EXPECT_EQ(log.seed, 26u);
  EXPECT_TRUE(std::filesystem::exists("rehearse-out/Check.Deadlock_FailsAtTheCallersLine/report.txt"));
}

TEST(Check, VerdictAsOneFailure_IsWhatSpiSees) {
  EXPECT_NONFATAL_FAILURE(check({.ranks = 2}, skip_one), "DEADLOCK: barrier #1");
}

// To find the lines of calls, World runs a failing body again. The second run must not report its failures.
TEST(Check, ExpectInARank_NamesRankAndSeedOnce) {
  const auto failures = failures_of([] {
    check({.ranks = 2, .seed = 5}, [](RankContext& ctx) {
      ctx.group().barrier()->wait();
      EXPECT_EQ(ctx.rank(), 0);
    });
  });
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_TRUE(failures[0].nonfatally_failed());
  EXPECT_THAT(message(failures[0]), HasSubstr("Which is: 1"));
  EXPECT_THAT(message(failures[0]), HasSubstr("\n[rank 1 at 10 us, seed 5]\nreplay: REHEARSE_SEED=0x5 "));
}

// ASSERT_* only returns from the body. The report must not say that the other ranks wait for a rank that has returned.
TEST(Check, AssertInARank_IsThatRanksFailure) {
  const auto failures = failures_of([] {
    check({.ranks = 3}, [](RankContext& ctx) {
      ASSERT_NE(ctx.rank(), 1);
      ctx.group().barrier()->wait();
    });
  });
  ASSERT_EQ(failures.size(), 2u);
  EXPECT_TRUE(failures[0].fatally_failed());
  EXPECT_THAT(message(failures[0]), HasSubstr("[rank 1 at 0 ns, seed 1]"));
  EXPECT_THAT(message(failures[1]), StartsWith("RANK FAILED: rank 1: a fatal assertion failed at "));
}

TEST(Check, SkipInARank_IsThatRanksFailure) {
  const auto failures = failures_of([] {
    check({.ranks = 2}, [](RankContext& ctx) {
      if (ctx.rank() == 0) GTEST_SKIP();
      ctx.group().barrier()->wait();
    });
  });
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_THAT(message(failures[0]), StartsWith("RANK FAILED: rank 0: GTEST_SKIP at "));
  EXPECT_FALSE(::testing::Test::IsSkipped());
}

// EXPECT_NO_THROW swallows RankAborted. Once the world has its verdict, a failed assertion in a rank is no failure of
// the test.
TEST(Check, AssertionsWhileTheWorldEnds_AreNotReported) {
  const auto failures = failures_of([] {
    check({.ranks = 2}, [](RankContext& ctx) {
      if (ctx.rank() == 1) throw std::runtime_error("disk full");
      EXPECT_NO_THROW(ctx.group().barrier()->wait());
    });
  });
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_THAT(message(failures[0]), StartsWith("RANK FAILED: rank 1: disk full"));
}

TEST(Check, SecondCheckOfATest_HasItsOwnFiles) {
  check({.ranks = 1}, [](RankContext&) {});
  EXPECT_NONFATAL_FAILURE(check({.ranks = 2}, skip_one), "Check.SecondCheckOfATest_HasItsOwnFiles#2/run.rlog");
}

TEST(Check, OptionsWithoutSense_Throw) { EXPECT_THROW(check({.ranks = 0}, add_ranks), std::invalid_argument); }

TEST(Environment, Seed_IsTheOnlyOneRun) {
  const Variable seed("REHEARSE_SEED", "0xabc");
  const Variable runs("REHEARSE_RUNS", "5");
  int worlds = 0;
  const auto failures = failures_of([&] {
    check({.ranks = 1}, [&](RankContext&) {
      ++worlds;
      EXPECT_TRUE(false);
    });
  });
  EXPECT_EQ(worlds, 1);
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_THAT(message(failures[0]), HasSubstr("seed 2748]\nreplay: REHEARSE_SEED=0xabc "));
}

// The body keeps state outside the ranks, so the second run differs.
TEST(Environment, CheckDeterminism_RunsTwice) {
  const Variable twice("REHEARSE_CHECK_DETERMINISM", "1");
  check({.ranks = 4}, add_ranks);
  int entered = 0;
  const auto failures = failures_of([&] {
    check({.ranks = 4}, [&](RankContext& ctx) {
      if (++entered > 4) exec::this_rank::yield();
      ctx.group().barrier()->wait();
    });
  });
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_THAT(message(failures[0]), StartsWith("NONDETERMINISM: two runs of seed 1 differ, so "));
  EXPECT_THAT(message(failures[0]), HasSubstr("\nreplay: REHEARSE_CHECK_DETERMINISM=1 REHEARSE_SEED=0x1 "));
  // Each rank makes the same call at the same time.
  EXPECT_THAT(message(failures[0]), Not(HasSubstr("call that differs")));
}

TEST(Environment, CheckDeterminism_NamesTheCallThatDiffers) {
  const Variable twice("REHEARSE_CHECK_DETERMINISM", "1");
  int entered = 0;
  const auto failures = failures_of([&] {
    check({.ranks = 4}, [&](RankContext& ctx) {
      if (++entered > 4 && ctx.rank() == 2) exec::this_rank::sleep_for(std::chrono::microseconds(3));
      ctx.group().barrier()->wait();
    });
  });
  ASSERT_EQ(failures.size(), 1u);
  const auto text = std::regex_replace(message(failures[0]), std::regex("\n  "), " ");
  EXPECT_THAT(text, HasSubstr(": the first call that differs is rank 2's barrier"));
  EXPECT_THAT(text, HasSubstr(" as #1 of group \"world\" at t=0 ns in the first run, at t=3 us in the second; "));
}

TEST(Environment, Replay_TakesTheLogOfThisCheckOnly) {
  const std::string name = "Environment.Replay_TakesTheLogOfThisCheckOnly";
  failures_of([] { check({.ranks = 3, .seed = 26}, skip_one); });
  auto log = sim::read_run_log("rehearse-out/" + name + "/run.rlog");
  log.program = name + "#3";
  sim::write_run_log("rehearse-out/" + name + "/third.rlog", log);

  const Variable replay("REHEARSE_REPLAY", "rehearse-out/" + name + "/third.rlog");
  check({.ranks = 3}, add_ranks);  // the second check, which the log does not belong to
  const auto failures = failures_of([] { check({.ranks = 3}, skip_one); });
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_THAT(message(failures[0]), StartsWith("DEADLOCK: barrier #1"));
  EXPECT_THAT(message(failures[0]), HasSubstr(" seed=26 "));
  EXPECT_THAT(message(failures[0]), HasSubstr("\nreplay: REHEARSE_REPLAY=rehearse-out/" + name + "/third.rlog "));
}

// AddressSanitizer writes a report of its own and then ends the process.
bool ends_by_sigsegv(int status) {
#ifdef __SANITIZE_ADDRESS__
  return testing::ExitedWithCode(1)(status);
#else
  return testing::KilledBySignal(SIGSEGV)(status);
#endif
}

TEST(CheckDeathTest, FatalSignal_LeavesCheckSeedRankAndCommand) {
  const auto dies = [](void (*how)()) {
    return [how] {
      check({.ranks = 3, .seed = 26}, [how](RankContext& ctx) {
        ctx.group().barrier()->wait();
        if (ctx.rank() == 1) how();
      });
    };
  };
  const std::string line =
      "rehearse: a fatal signal on rank 1 ended CheckDeathTest.FatalSignal_LeavesCheckSeedRankAndCommand, seed 26; "
      "again: "
      "REHEARSE_SEED=0x1a .*sim_check_tests --gtest_filter=CheckDeathTest.FatalSignal_LeavesCheckSeedRankAndCommand\n";
  EXPECT_EXIT(dies([] { std::abort(); })(), testing::KilledBySignal(SIGABRT), line);
  EXPECT_EXIT(dies([] { ::raise(SIGSEGV); })(), ends_by_sigsegv, line);
  EXPECT_EXIT(dies([] { ::raise(SIGALRM); })(), testing::KilledBySignal(SIGALRM), line);
}

// The process can only be killed. It ends with the exit code of an interrupted run.
TEST(CheckDeathTest, RankThatNeverSwitchesPastItsTime_IsNamed) {
  EXPECT_EXIT(
      {
        const Variable limit("REHEARSE_TIME_LIMIT", "1");
        check({.ranks = 3, .seed = 26}, [](RankContext& ctx) {
          ctx.group().barrier()->wait();
          for (volatile unsigned value = 0; ctx.rank() == 1;) value = value + 1;
        });
      },
      testing::ExitedWithCode(130),
      "INTERRUPTED: did not end within 1 s \\(REHEARSE_TIME_LIMIT\\) and had to be killed: rank 1 computes at "
      "check_test.cpp:.*\nended CheckDeathTest.RankThatNeverSwitchesPastItsTime_IsNamed, seed 26; again: "
      "REHEARSE_SEED=0x1a ");
}

// Signals outside a run belong to the rest of the program.
TEST(CheckDeathTest, FatalSignalAfterACheck_IsNoneOfOurs) {
  EXPECT_EXIT(
      {
        check({.ranks = 3}, add_ranks);
        std::abort();
      },
      testing::KilledBySignal(SIGABRT), testing::Not(HasSubstr("rehearse:")));
}

TEST(Environment, ReplayThatNoCheckTakes_IsReportedAtTheEnd) {
  const std::string name = "Environment.ReplayThatNoCheckTakes_IsReportedAtTheEnd";
  failures_of([] { check({.ranks = 3, .seed = 26}, skip_one); });
  auto log = sim::read_run_log("rehearse-out/" + name + "/run.rlog");
  const auto replayed_by = [&](const std::string& program) {
    log.program = program;
    const auto file = std::filesystem::absolute("rehearse-out/" + name + "/other.rlog");
    sim::write_run_log(file, log);
    const auto finished = test::run_process(std::filesystem::read_symlink("/proc/self/exe"),
                                            {"--gtest_filter=Check.GoodBody_AddsNothing"}, test::fresh_folder(),
                                            {"REHEARSE_REPLAY=" + file.string()});
    return std::pair{finished.exit_code, std::regex_replace(finished.err, std::regex("=.*/"), "=")};
  };
  EXPECT_EQ(replayed_by("Another.Test"),
            (std::pair{0, std::string("rehearse: no check used REHEARSE_REPLAY=other.rlog: the test \"Another.Test\" "
                                      "wrote that log, and it did not run\n")}));
  const auto [exit_code, err] = replayed_by("Check.GoodBody_AddsNothing");
  EXPECT_EQ(exit_code, 1);  // the log belongs to another body
  EXPECT_EQ(err, "");
}

TEST(Environment, ReplayOfAnotherBody_SaysWhere) {
  const std::string name = "Environment.ReplayOfAnotherBody_SaysWhere";
  failures_of([] { check({.ranks = 3}, skip_one); });
  auto log = sim::read_run_log("rehearse-out/" + name + "/run.rlog");
  log.program = name + "#2";
  sim::write_run_log("rehearse-out/" + name + "/second.rlog", log);
  const Variable replay("REHEARSE_REPLAY", "rehearse-out/" + name + "/second.rlog");
  const auto failures = failures_of([] {
    check({.ranks = 3}, [](RankContext& ctx) {
      for (int i = 0; i < 9; ++i) ctx.group().barrier()->wait();
    });
  });
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_THAT(message(failures[0]), HasSubstr("second.rlog: the replay differs from the log: "));
}

TEST(Environment, Trace_IsWritten) {
  const auto folder = std::filesystem::path("rehearse-out") / "traces";
  std::filesystem::remove_all(folder);
  const Variable trace("REHEARSE_TRACE", folder.string());
  check({.ranks = 2}, add_ranks);
  EXPECT_TRUE(std::filesystem::exists(folder / "Environment.Trace_IsWritten.json"));
}

TEST(Environment, TimeLimit_EndsARunThatSwitchesForEver) {
  const Variable limit("REHEARSE_TIME_LIMIT", "1");
  const auto failures = failures_of([] {
    check({.ranks = 3}, [](RankContext& ctx) {
      for (;;) ctx.group().barrier()->wait();
    });
  });
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_THAT(message(failures[0]), StartsWith("INTERRUPTED: did not end within 1 s (REHEARSE_TIME_LIMIT): after "));
  EXPECT_THAT(message(failures[0]), HasSubstr("check_test.cpp:"));
  // The limit applied only to that run.
  check({.ranks = 3}, add_ranks);
}

TEST(Environment, ValuesWithoutSense_FailTheCheck) {
  const auto refused = [](const char* name, const char* value) {
    const Variable variable(name, value);
    const auto failures = failures_of([] { check({.ranks = 1}, [](RankContext&) {}); });
    return failures.size() == 1 ? message(failures[0]) : "";
  };
  EXPECT_EQ(refused("REHEARSE_SEED", "seven"),
            "the environment variable REHEARSE_SEED is \"seven\"; it takes an integer from 0 to 2^64 - 1, as "
            "in 7 or "
            "0x8f3a");
  EXPECT_EQ(refused("REHEARSE_RUNS", "0"),
            "the environment variable REHEARSE_RUNS is \"0\"; it takes a number of seeds, 1 or more");
  EXPECT_EQ(refused("REHEARSE_CHECK_DETERMINISM", "yes"),
            "the environment variable REHEARSE_CHECK_DETERMINISM is \"yes\"; it takes 0 or 1");
  for (const char* value : {"0", "1.5", "1000001"}) {
    EXPECT_EQ(refused("REHEARSE_TIME_LIMIT", value), "the environment variable REHEARSE_TIME_LIMIT is \"" +
                                                         std::string(value) +
                                                         "\"; it takes seconds, from 1 to 1000000");
  }
  EXPECT_EQ(refused("REHEARSE_REPLAY", "no.rlog"), "no.rlog: cannot be read: No such file or directory");
}

TEST(Run, ExpectedVerdict_IsNoFailure) {
  const auto report = run({.ranks = 3}, skip_one);
  EXPECT_TRUE(has_verdict(report, Verdict::deadlock));
  const auto other = has_verdict(report, Verdict::ok);
  EXPECT_FALSE(other);
  EXPECT_THAT(other.message(), StartsWith("expected the verdict OK; the run said\nDEADLOCK: barrier #1"));
}

TEST(Run, AssertionInARank_StillCounts) {
  EXPECT_NONFATAL_FAILURE(run({.ranks = 2}, [](RankContext& ctx) { EXPECT_EQ(ctx.rank(), 0); }), "[rank 1 at 0 ns");
}

TEST(Run, AssertionInARestartedRank_StillCounts) {
  constexpr const char* crash = "crash rank=1 at=barrier#1 peers=disconnect restart=1ms";
  const auto body = [](RankContext& ctx) {
    if (ctx.rank() != 1) return;
    EXPECT_EQ(ctx.incarnation(), 0);
    if (ctx.incarnation() == 0) ctx.group().barrier()->wait();
  };
  const auto failures = failures_of([&] { run({.ranks = 2, .faults = {parse_fault(crash)}}, body); });
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_THAT(message(failures[0]), HasSubstr("ctx.incarnation()"));
  EXPECT_THAT(message(failures[0]), HasSubstr("[rank 1 at 1 ms"));
}

TEST(Verdict, Printed_IsItsName) { EXPECT_EQ(::testing::PrintToString(Verdict::check_failed), "CHECK FAILED"); }

}  // namespace
}  // namespace rehearse
