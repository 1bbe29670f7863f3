// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <iosfwd>
#include <source_location>

#include <gtest/gtest.h>

#include <torch/types.h>

#include <rehearse/gtest/rank_trace.h>
#include <rehearse/job/group.h>
#include <rehearse/job/program.h>
#include <rehearse/job/rank_context.h>
#include <rehearse/job/report.h>
#include <rehearse/sim/world.h>

// Tests distributed code with GoogleTest: all ranks run in this process, scheduled from a seed.
//
//   #include <rehearse/rehearse.h>
//
//   TEST(MyTrainer, AllReduceAgrees) {
//     rehearse::check({.ranks = 4}, [](rehearse::RankContext& ctx) {
//       auto grad = torch::full({3}, static_cast<double>(ctx.rank()));
//       ctx.group().allreduce(grad)->wait();
//       EXPECT_EQ(grad[0].item<double>(), 0 + 1 + 2 + 3);
//     });
//   }
//
// Environment variables change every check() without touching the test:
//
//   REHEARSE_SEED=N                  run with exactly this seed, decimal or 0x...
//   REHEARSE_RUNS=N                  run with N seeds, beginning with the options' seed; stop at the first that fails.
//                                    The seeds take turns among strategies (sim::portfolio()).
//   REHEARSE_SCHEDULE=pct:3:57+time  schedule each run in this way; the text is that of a report
//   REHEARSE_REPLAY=run.rlog         the check that wrote this log replays it; others run as usual (if no check of a
//                                    program wrote the log, the program says so on stderr)
//   REHEARSE_PREEMPT=1               calls that never block (of stores and files, locks, unlocks) may switch, too; 0:
//                                    they may not. This goes before REHEARSE_SCHEDULE.
//   REHEARSE_CHECK_DETERMINISM=1     run each seed twice; fail if the second run differs from the first
//   REHEARSE_TIME_LIMIT=SECONDS      stop and fail a run that takes longer (real time); the report says where its
//                                    ranks are. If a rank never switches, this ends the test program.
//   REHEARSE_TRACE=DIR               write a trace of each check's last run to DIR/<Suite.Test>.json
//
// REHEARSE_REPLAY takes precedence over REHEARSE_SEED, and REHEARSE_SEED over REHEARSE_RUNS. A value that makes no
// sense fails the check.
//
// You may use GoogleTest's assertions inside a rank. EXPECT_* fails the test as usual, and the message names the rank,
// the time and the seed. SCOPED_TRACE applies to its own rank. ASSERT_* and GTEST_SKIP leave the function that contains
// them. The rank fails when its body then returns, and its failure ends the world: otherwise the other ranks would wait
// for the rank forever. Assertions that fail while a world is ending are not reported, because they are a consequence
// of the end.
namespace rehearse {

// Simulates the ranks and fails the test, at the line of the call, unless the verdict is OK. The failure contains the
// text report, whose line "replay: ..." repeats the run. Report and decision log are then in rehearse-out/<Suite.Test>/
// below the current directory, unless the run was a replay.
//
// Blocks until every rank has ended. Call it from the test's thread, outside any world. Throws std::invalid_argument
// for options that make no sense.
void check(WorldOptions options, World::Body body, std::source_location where = std::source_location::current());

// Simulates the ranks for a test that expects a verdict. Never fails the test by itself, writes no files, and ignores
// the environment. Assertions inside ranks count as in check().
Report run(const WorldOptions& options, World::Body body);

// Use it as EXPECT_TRUE(has_verdict(report, Verdict::deadlock)). A failure prints the report's text.
::testing::AssertionResult has_verdict(const Report& report, Verdict wanted);

void PrintTo(Verdict verdict, std::ostream* out);

}  // namespace rehearse
