// SPDX-License-Identifier: BSD-3-Clause
// Contract: once a rank has seen the end of a group's call in any way, it knows that its earlier collectives on that
// group have ended. For earlier messages, the call must be a barrier. A monitored barrier says nothing about earlier
// calls. Only calls whose end the rank cannot know get a remark.
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/ops/ones.h>

#include <rehearse/comm/errors.h>
#include <rehearse/sim/world.h>
#include <rehearse_internal/exec/this_rank.h>

namespace rehearse {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

using WorkPtr = c10::intrusive_ptr<c10d::Work>;

void poll(const WorkPtr& work) {
  while (!work->isCompleted()) {
  }
}

void wait_for_its_future(const WorkPtr& work) { work->getFuture()->wait(); }

void wait_for(const WorkPtr& work) { work->wait(); }

std::vector<std::string> remarks_of(const World::Body& body) {
  WorldOptions options;
  options.ranks = 2;
  const auto report = World(options).run(body);
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  return report.remarks;
}

WorkPtr all_reduce(RankContext& ctx) {
  auto tensor = at::ones({3});
  return ctx.group().allreduce(tensor);
}

TEST(Unwaited, LaterCallWhoseEndWasSeen_CoversCollectives) {
  for (const auto see : {poll, wait_for_its_future, wait_for}) {
    EXPECT_THAT(remarks_of([see](RankContext& ctx) {
                  all_reduce(ctx);
                  see(ctx.group().barrier());
                }),
                IsEmpty());
    EXPECT_THAT(remarks_of([see](RankContext& ctx) {
                  all_reduce(ctx);
                  see(all_reduce(ctx));
                }),
                IsEmpty());
  }
}

TEST(Unwaited, LaterCall_CoversNoLaterOnes_AndNoOtherGroup) {
  EXPECT_THAT(remarks_of([](RankContext& ctx) {
                const auto first = all_reduce(ctx);
                all_reduce(ctx);
                first->wait();
              }),
              ElementsAre(StartsWith("nobody waited for allreduce #2 on group \"world\" of ranks 0-1")));
  EXPECT_THAT(remarks_of([](RankContext& ctx) {
                auto other = ctx.new_group({0, 1});
                all_reduce(ctx);
                other.barrier()->wait();
              }),
              ElementsAre(StartsWith("nobody waited for allreduce #1 on group \"world\" of ranks 0-1")));
}

// Messages end in any order. Only a barrier comes after all of them.
TEST(Unwaited, Message_IsCoveredByABarrierAlone) {
  const auto send = [](RankContext& ctx) {
    auto tensor = at::ones({3});
    if (ctx.rank() == 0) {
      ctx.group().send(tensor, 1);
    } else {
      ctx.group().recv(tensor, 0)->wait();
    }
  };
  EXPECT_THAT(remarks_of([send](RankContext& ctx) {
                send(ctx);
                all_reduce(ctx)->wait();
              }),
              ElementsAre(HasSubstr("nobody waited for send #1")));
  EXPECT_THAT(remarks_of([send](RankContext& ctx) {
                send(ctx);
                ctx.group().barrier()->getFuture()->wait();
              }),
              IsEmpty());
}

// A monitored barrier consists of messages of its own. Neither its success nor its failure says whether earlier calls
// have ended.
TEST(Unwaited, MonitoredBarrier_CoversNoEarlierCall) {
  EXPECT_THAT(remarks_of([](RankContext& ctx) {
                all_reduce(ctx);
                ctx.group()->monitoredBarrier({});
              }),
              ElementsAre(StartsWith("nobody waited for allreduce #1 on group \"world\" of ranks 0-1")));
  EXPECT_THAT(remarks_of([](RankContext& ctx) {
                auto tensor = at::ones({3});
                if (ctx.rank() == 0) {
                  ctx.group().send(tensor, 1);
                } else {
                  ctx.group().recv(tensor, 0)->wait();
                }
                ctx.group()->monitoredBarrier({});
              }),
              ElementsAre(HasSubstr("nobody waited for send #1")));
}

TEST(Unwaited, MonitoredBarrierThatThrows_CoversNoEarlierCall) {
  EXPECT_THAT(remarks_of([](RankContext& ctx) {
                const auto first = all_reduce(ctx);
                if (ctx.rank() == 1) return wait_for(first);
                EXPECT_THROW(ctx.group()->monitoredBarrier({}), TimeoutError);
              }),
              ElementsAre(StartsWith("nobody waited for allreduce #1 on group \"world\" of rank 0")));
}

// Rank 0's error says that its barrier is over.
TEST(Unwaited, MonitoredBarrierWithoutTime_IsKnownByItsError) {
  for (const int first : {0, 1}) {
    EXPECT_THAT(remarks_of([first](RankContext& ctx) {
                  exec::this_rank::sleep_for(std::chrono::milliseconds(ctx.rank() == first ? 0 : 1));
                  c10d::BarrierOptions barrier;
                  barrier.timeout = std::chrono::milliseconds(0);
                  EXPECT_THROW(ctx.group()->monitoredBarrier(barrier, false), CommError);
                }),
                IsEmpty());
  }
}

TEST(Unwaited, Times_CountFromTheLastCallThatWasSeen) {
  const auto remarks = remarks_of([](RankContext& ctx) {
    for (int step = 0; step < 5; ++step) {
      for (int i = 0; i < 2; ++i) all_reduce(ctx);
      if (step < 4) ctx.group().barrier()->wait();
    }
  });
  ASSERT_EQ(remarks.size(), 1u);
  EXPECT_THAT(remarks[0], HasSubstr("(2 times each)"));
}

}  // namespace
}  // namespace rehearse
