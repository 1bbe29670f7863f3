// SPDX-License-Identifier: BSD-3-Clause
// Contract: the effects of faults are part of a run's identity, even if they changed only values. Faults that did not
// fire are not part of it, nor is the notation of a fault.
#include <chrono>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include <rehearse_internal/exec/this_rank.h>

#include "faulty_world.h"

namespace rehearse::test {
namespace {

using std::chrono::milliseconds;

void write_and_read(RankContext& ctx) {
  for (int step = 1; step <= 3; ++step) {
    ctx.group().allreduce(at::full({4}, 1.0, at::kDouble))->wait();
    exec::this_rank::sleep_for(milliseconds(1));
    if (ctx.rank() == 0) ctx.store()->set("epoch", std::to_string(step));
    ctx.group().barrier()->wait();
    ctx.store()->get_to_str("epoch");
  }
}

std::uint64_t identity(const std::vector<std::string>& faults) {
  const auto report = run(faults, write_and_read);
  EXPECT_TRUE(report.verdict == Verdict::ok || report.verdict == Verdict::fault_not_fired) << report.headline;
  return report.identity;
}

TEST(Identity, HasWhatFaultsChanged) {
  const std::vector<std::vector<std::string>> all = {
      {},
      {"corrupt rank=1 at=allreduce#1"},
      {"corrupt rank=2 at=allreduce#1"},
      {"corrupt rank=1 at=allreduce#3"},
      {"corrupt rank=1 at=allreduce#1 with=bit"},
      {"corrupt rank=1 at=allreduce#1 element=1"},
      {"corrupt rank=1-2 at=allreduce#1"},
      {"stale_key rank=1 key=epoch call=get#2"},
      {"stale_key rank=1 key=epoch call=get#3"},
      {"clock_jump rank=1 after=1ms by=1h"},
      {"clock_jump rank=1 after=1ms by=2h"},
      {"clock_jump rank=1 after=2ms by=1h"},
  };
  std::set<std::uint64_t> identities;
  for (const auto& faults : all) identities.insert(identity(faults));
  EXPECT_EQ(identities.size(), all.size());
}

TEST(Identity, IsAsWithoutFaultsThatDidNotFire) {
  EXPECT_EQ(identity({"crash rank=1 at=allreduce#100", "clock_jump rank=1 after=1h by=1h"}), identity({}));
}

TEST(Identity, IsTheSameHoweverTheFaultWasWritten) {
  const auto first = identity({"corrupt rank=1 at=allreduce#3"});
  EXPECT_EQ(identity({"corrupt rank=1 call=allreduce#2 optional=true"}), first);
  EXPECT_EQ(identity({"corrupt rank=1 at=#3 times=5"}), first);
}

}  // namespace
}  // namespace rehearse::test
