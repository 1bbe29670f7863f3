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

// Distributed code in a GoogleTest: all ranks in this process, from a seed.
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
// What the environment may ask of every check(), without touching the test:
//
//   REHEARSE_SEED=N                  run with exactly this seed, decimal or 0x...
//   REHEARSE_RUNS=N                  run with N seeds, from the options' on; stop at the first that fails
//   REHEARSE_REPLAY=run.rlog         the check that wrote this log replays it; others run as usual (a program
//                                    of which no check wrote it says so on stderr)
//   REHEARSE_PREEMPT=1               calls that never block (of stores, locks, unlocks) may switch, too; 0: they may
//                                    not. REHEARSE_RUNS brings it along, unless the options or this say otherwise.
//   REHEARSE_CHECK_DETERMINISM=1     run each seed twice; another way the second time is a failure
//   REHEARSE_TIME_LIMIT=SECONDS      a run that takes longer (real time) is stopped and fails, with where its
//                                    ranks are; a rank that never switches ends the test program
//   REHEARSE_TRACE=DIR               write a trace of each check's last run to DIR/<Suite.Test>.json
//
// REHEARSE_REPLAY goes before REHEARSE_SEED, and that before REHEARSE_RUNS. A value that makes no sense fails
// the check.
//
// GoogleTest's assertions inside a rank: EXPECT_* fails the test as usual, and the message says which rank,
// when and under which seed; SCOPED_TRACE is the rank's own. ASSERT_* and GTEST_SKIP leave the function they stand in;
// when that ends the rank, the others would wait for it forever, so it counts as a failure of that rank and ends the
// world. Assertions that fail while a world is being ended are not reported: they are its consequence.
namespace rehearse {

// Simulates the ranks and fails the test, at the line of the call, unless the verdict is ok. The failure is
// the text report; its line "replay: ..." runs the same again. Report and decision log are then in
// rehearse-out/<Suite.Test>/ below the current directory.
//
// Blocks until every rank has ended. Call it from the test's thread, outside of any world. Throws
// std::invalid_argument for options that make no sense.
void check(WorldOptions options, World::Body body, std::source_location where = std::source_location::current());

// The same for tests that expect a verdict: never a failure of its own, no files, and the environment is not
// asked. Assertions inside ranks count as above.
Report run(WorldOptions options, World::Body body);

// EXPECT_TRUE(has_verdict(report, Verdict::deadlock)): on failure prints the report's text.
::testing::AssertionResult has_verdict(const Report& report, Verdict wanted);

void PrintTo(Verdict verdict, std::ostream* out);

}  // namespace rehearse
