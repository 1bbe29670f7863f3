// SPDX-License-Identifier: BSD-3-Clause
// Contract: if any rank crashes in any of its calls, the job still ends with the parameters of a run without faults, to
// the bit.
#include <fmt/format.h>

#include "bit_equal.h"
#include "elastic_world.h"

namespace rehearse::test {
namespace {

constexpr int kRanks = 3;
const elastic_ddp::Job kJob{.steps = 3, .rows = 6, .save_every = 1};

at::Tensor without_faults(const elastic_ddp::Job& job, int ranks = kRanks) {
  const auto run = run_elastic(elastic_world({}, ranks), job);
  EXPECT_EQ(run.report.verdict, Verdict::ok) << run.report.headline;
  for (const auto& parameters : run.parameters) EXPECT_THAT(parameters, BitEqual(run.parameters[0]));
  return run.parameters[0];
}

// Crashes each rank in each of its calls. Returns the number of crashes.
int crash_everywhere(const elastic_ddp::Job& job, const std::string& how, const std::string& verb = "crash") {
  const auto expected = without_faults(job);
  int crashes = 0;
  for (int rank = 0; rank < kRanks; ++rank) {
    for (int call = 1;; ++call) {
      const auto fault = fmt::format("{} rank={} call=#{} {}", verb, rank, call, how);
      const auto run = run_elastic(elastic_world({fault}, kRanks), job);
      if (!run.fired()) break;
      ++crashes;
      expect_all_have(run, expected, fault);
    }
  }
  return crashes;
}

TEST(EveryCrash, PeersDisconnect_EndsAsWithoutFaults) {
  EXPECT_GE(crash_everywhere(kJob, "peers=disconnect restart=5ms"), kRanks * 2 * static_cast<int>(kJob.steps));
}

TEST(EveryCrash, PeersTimeOut_EndsAsWithoutFaults) {
  EXPECT_GE(crash_everywhere(kJob, "peers=timeout restart=5ms"), kRanks * 2 * static_cast<int>(kJob.steps));
}

TEST(EveryCrash, CheckpointsNowAndThen_EndsAsWithoutFaults) {
  const elastic_ddp::Job job{.steps = 5, .rows = 6, .save_every = 2};
  EXPECT_GE(crash_everywhere(job, "peers=disconnect restart=5ms"), kRanks * 2 * static_cast<int>(job.steps));
}

TEST(EveryExit, PeersDisconnect_EndsAsWithoutFaults) {
  EXPECT_GE(crash_everywhere(kJob, "status=2 peers=disconnect restart=5ms", "exit"),
            kRanks * 2 * static_cast<int>(kJob.steps));
}

// Rank 1 comes back before the other ranks notice its crash, or long after.
TEST(EveryCrash, EachDelayOfTheRestart_EndsAsWithoutFaults) {
  const auto expected = without_faults(kJob);
  for (const std::string delay : {"1ns", "1us", "10us", "1ms", "1s", "20min"}) {
    for (const std::string peers : {"disconnect", "timeout"}) {
      const auto fault = fmt::format("crash rank=1 call=allreduce#3 peers={} restart={}", peers, delay);
      const auto run = run_elastic(elastic_world({fault}, kRanks), kJob);
      EXPECT_TRUE(run.fired());
      expect_all_have(run, expected, fault);
    }
  }
}

TEST(EveryCrash, EachSchedule_EndsAsWithoutFaults) {
  const auto expected = without_faults(kJob);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const std::string fault = "crash rank=0 call=allreduce#3 peers=disconnect restart=5ms";
    auto options = elastic_world({fault}, kRanks, seed);
    options.preempt = seed % 2 == 0;
    expect_all_have(run_elastic(options, kJob), expected, fmt::format("{} with seed {}", fault, seed));
  }
}

// Rank 0 crashes in several of its calls, and rank 2 in each of its calls. So rank 2 crashes before, during and after
// the recovery from rank 0's crash.
TEST(TwoCrashes, EndAsWithoutFaults) {
  const auto expected = without_faults(kJob);
  int both = 0;
  for (int first = 2; first <= 14; first += 3) {
    for (int second = 1;; ++second) {
      const std::vector<std::string> faults{fmt::format("crash rank=0 call=#{} peers=disconnect restart=5ms", first),
                                            fmt::format("crash rank=2 call=#{} peers=disconnect restart=7ms", second)};
      const auto run = run_elastic(elastic_world(faults, kRanks), kJob);
      if (!run.fired(1)) break;
      both += run.fired(0) ? 1 : 0;
      expect_all_have(run, expected, faults[0] + " and " + faults[1]);
    }
  }
  EXPECT_GE(both, 5 * 2 * static_cast<int>(kJob.steps));
}

// Rank 1 joins the rendezvous of a round, crashes, and comes back to a later round. It never makes the group of the
// first one. Its calls from the seventh on are those of the last round.
TEST(TwoCrashes, InTheRendezvous_EndAsWithoutFaults) {
  const auto expected = without_faults(kJob);
  int both = 0;
  for (int call = 1; call <= 6; ++call) {
    const std::vector<std::string> faults{
        "crash rank=0 call=allreduce#3 peers=disconnect restart=5ms",
        fmt::format("crash rank=1 call=compareSet#{} peers=disconnect restart=5ms", call)};
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      const auto run = run_elastic(elastic_world(faults, kRanks, seed), kJob);
      both += run.fired(0) && run.fired(1) ? 1 : 0;
      expect_all_have(run, expected, fmt::format("{} and {} with seed {}", faults[0], faults[1], seed));
    }
  }
  EXPECT_GE(both, 12);
}

TEST(TwoCrashes, OfOneRank_EndAsWithoutFaults) {
  const auto expected = without_faults(kJob);
  int both = 0;
  for (int call = 1;; ++call) {
    const std::vector<std::string> faults{fmt::format("crash rank=1 call=#{} peers=disconnect restart=5ms", call),
                                          fmt::format("crash rank=1 call=#{} peers=disconnect restart=5ms", call + 1)};
    const auto run = run_elastic(elastic_world(faults, kRanks), kJob);
    if (!run.fired(0)) break;
    EXPECT_TRUE(run.fired(1));
    ++both;
    expect_all_have(run, expected, faults[0] + " and " + faults[1]);
  }
  EXPECT_GE(both, 2 * static_cast<int>(kJob.steps));
}

// Rank 2 crashes at many times between the crash of rank 0 and the end of the job. At some of these times, the ranks
// wait for rank 0, or rank 0 is coming back.
TEST(CrashDuringRecovery, AtEachTime_EndsAsWithoutFaults) {
  const auto expected = without_faults(kJob);
  const std::string first = "crash rank=0 call=allreduce#3 peers=disconnect restart=1ms";
  const auto alone = run_elastic(elastic_world({first}, kRanks), kJob);
  const auto crashed_at = alone.report.faults[0].fired[0].at - VirtualTime();
  int recovering = 0;
  for (int after = 25;; after += 25) {
    const auto at = crashed_at + std::chrono::microseconds(after);
    const std::vector<std::string> faults{
        first, fmt::format("crash rank=2 after={}ns peers=disconnect restart=300us", at.count())};
    const auto run = run_elastic(elastic_world(faults, kRanks), kJob);
    if (!run.fired(1)) break;  // the job was over before the second crash
    EXPECT_TRUE(run.fired(0));
    recovering += after < 1'000 ? 1 : 0;
    expect_all_have(run, expected, faults[0] + " and " + faults[1]);
  }
  EXPECT_EQ(recovering, 39);
}

TEST(CrashDuringRecovery, OfAllRanks_EndsAsWithoutFaults) {
  const std::string fault = "crash rank=all call=allreduce#4 peers=disconnect restart=5ms";
  expect_all_have(run_elastic(elastic_world({fault}, kRanks), kJob), without_faults(kJob), fault);
}

}  // namespace
}  // namespace rehearse::test
