// SPDX-License-Identifier: BSD-3-Clause
// Contract: a rank gets a remark if it catches the timeout of a call and goes on with the group of that call, or if it
// catches the default timeout of a store call and returns. Both would cause trouble outside of the simulation. A remark
// names a group that several threads of a rank used: if the run failed, or if the threads did not take turns.
#include <chrono>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/ops/ones.h>
#include <c10/util/Exception.h>

#include <rehearse/comm/errors.h>
#include <rehearse/parallel/device_mesh.h>
#include <rehearse/sim/report_writers.h>
#include <rehearse/sim/world.h>
#include <rehearse_internal/exec/this_rank.h>

namespace rehearse {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

// Rank 1 sleeps until rank 0's first all-reduce has timed out, and then gets the error of that call.
Report after_a_timeout(const std::function<void(RankContext&)>& then) {
  return World({.ranks = 2, .timeout = std::chrono::seconds(1)}).run([&](RankContext& ctx) {
    if (ctx.rank() == 1) exec::this_rank::sleep_for(std::chrono::milliseconds(1500));
    auto tensor = at::ones({3});
    EXPECT_ANY_THROW(ctx.group().allreduce(tensor)->wait());
    then(ctx);
  });
}

TEST(CaughtTimeouts, OfACall_AreRemarkedWhereTheGroupGoesOn) {
  const auto report = after_a_timeout([](RankContext& ctx) { ctx.group().barrier()->wait(); });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_THAT(report.remarks,
              Contains(AllOf(StartsWith("rank 0"), HasSubstr("went on with group \"world\" after allreduce #1 on group "
                                                             "\"world\" had timed out: Gloo and NCCL refuse"))));
}

TEST(CaughtTimeouts, OfAnAbandonedGroup_AreNotRemarked) {
  const auto report = after_a_timeout([](RankContext&) {});
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_THAT(report.remarks, IsEmpty());
  const auto another = after_a_timeout([](RankContext& ctx) { ctx.new_group({0, 1}).barrier()->wait(); });
  EXPECT_EQ(another.verdict, Verdict::ok) << another.headline;
  EXPECT_THAT(another.remarks, IsEmpty());
}

TEST(CaughtTimeouts, OfAStore_AreRemarkedUnlessTheCallLimitsItself) {
  const auto with = [](auto wait) {
    return World({.ranks = 2}).run([wait](RankContext& ctx) {
      if (ctx.rank() == 1) return;
      EXPECT_ANY_THROW(wait(*ctx.store()));
    });
  };
  EXPECT_THAT(with([](c10d::Store& store) { store.wait({"id"}); }).remarks,
              ElementsAre("rank 0: went on after store wait for key \"id\" had timed out"));
  EXPECT_THAT(with([](c10d::Store& store) { store.get("id"); }).remarks,
              ElementsAre(HasSubstr("key \"id\" had timed out")));
  EXPECT_THAT(with([](c10d::Store& store) { store.wait({"id"}, std::chrono::milliseconds(100)); }).remarks, IsEmpty());
}

std::vector<std::string> remarks_of(const std::function<void(RankContext&)>& body) {
  const auto report = World({.ranks = 4}).run(body);
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  return report.remarks;
}

TEST(UnusedGroups, AreNamedWithTheirPlace) {
  EXPECT_THAT(remarks_of([](RankContext& ctx) {
                ctx.new_group({0, 1}, "left");
                const auto right = ctx.new_group({2, 3}, "right");
                if (right) right.barrier()->wait();
              }),
              ElementsAre(AllOf(StartsWith("no rank made a call on the group \"left\", made at habits_test.cpp:"))));
  EXPECT_THAT(remarks_of([](RankContext& ctx) {
                for (const int first : {0, 2}) ctx.new_group({first, first + 1});
              }),
              ElementsAre(StartsWith("no rank made a call on the groups \"group1\", \"group2\", made at")));
}

TEST(UnusedGroups, OfAPlaceWhoseOthersAreUsed_AreNotRemarked) {
  EXPECT_THAT(remarks_of([](RankContext& ctx) {
                Group own;
                for (const int first : {0, 2}) {
                  if (auto made = ctx.new_group({first, first + 1})) own = made;
                }
                if (ctx.rank() < 2) own.barrier()->wait();
              }),
              IsEmpty());
  EXPECT_THAT(remarks_of([](RankContext& ctx) {
                const DeviceMesh mesh(ctx, {2, 2}, {"dp", "tp"});
                mesh.group("tp").barrier()->wait();
              }),
              IsEmpty());
}

TEST(UnusedGroups, ThatAreUsedOtherwise_AreNotRemarked) {
  EXPECT_THAT(remarks_of([](RankContext& ctx) {
                ctx.new_group({ctx.rank() < 4 ? 1 : 0}, "of one rank");
                const auto pair = ctx.new_group({0, 1}, "of messages"), all = ctx.new_group({0, 1, 2, 3}, "parent");
                auto tensor = at::ones({2});
                if (ctx.rank() == 0) pair.send(tensor, 1)->wait();
                if (ctx.rank() == 1) pair.recv(tensor, 0)->wait();
                Group(all->splitGroup({0, 1, 2, 3}, {}, {}, {}, {})).barrier()->wait();
              }),
              IsEmpty());
}

TEST(ThreadsOfARank, OnOneGroup_AreNamedWhereTheRunFails) {
  const auto body = [](RankContext& ctx, bool of_its_own) {
    const auto other = ctx.new_group({0, 1}, "prefetch");
    std::thread prefetch([&] {
      for (int call = 0; call < 3; ++call) (of_its_own ? other : ctx.group()).broadcast(at::ones({2}))->wait();
    });
    if (ctx.rank() == 1) std::this_thread::yield();
    auto gradient = at::ones({4});
    for (int call = 0; call < 3; ++call) ctx.group().allreduce(gradient)->wait();
    prefetch.join();
  };
  int failed = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto shared = World({.ranks = 2, .seed = seed}).run([&](RankContext& ctx) { body(ctx, false); });
    if (shared.verdict == Verdict::ok) continue;
    ++failed;
    EXPECT_EQ(shared.verdict, Verdict::mismatch) << shared.headline;
    EXPECT_THAT(shared.headline, Not(HasSubstr("out of step")));  // no rank left a call out
    EXPECT_THAT(shared.remarks, Contains(HasSubstr("collectives on group \"world\" come from several threads")));
    const auto apart = World({.ranks = 2, .seed = seed}).run([&](RankContext& ctx) { body(ctx, true); });
    EXPECT_EQ(apart.verdict, Verdict::ok) << apart.headline;
  }
  EXPECT_GT(failed, 0);
}

// Calls of one shape match, whichever thread makes them. So the run is OK, and its sums are wrong.
TEST(ThreadsOfARank, WhoseCallsLookAlike_AreNamedWhereTheyMix) {
  int mixed = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    bool is_mixed = false;
    const auto report = World({.ranks = 2, .seed = seed}).run([&](RankContext& ctx) {
      auto value = at::ones({4}), other = at::zeros({4});
      std::thread helper([&] { ctx.group().allreduce(other)->wait(); });
      if (ctx.rank() == 1) std::this_thread::yield();
      ctx.group().allreduce(value)->wait();
      helper.join();
      is_mixed = is_mixed || value[0].item<float>() != 2;
    });
    EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
    if (!is_mixed) continue;
    ++mixed;
    EXPECT_THAT(report.remarks, Contains(HasSubstr("collectives on group \"world\" come from several threads")));
  }
  EXPECT_GT(mixed, 0);
}

// One rank calls from a thread and the others do not, but each has its calls in order.
TEST(ThreadsOfARank, ThatMakeAllItsCalls_AreSilent) {
  const auto report = World({.ranks = 3}).run([](RankContext& ctx) {
    const auto call = [&] {
      for (int i = 0; i < 2; ++i) ctx.group().allreduce(at::ones({1}))->wait();
    };
    if (ctx.rank() == 2) return std::thread(call).join();
    call();
  });
  EXPECT_EQ(report.verdict, Verdict::ok);
  EXPECT_THAT(report.remarks, testing::IsEmpty());
}

TEST(ThreadsOfARank, ThatMakeGroupsInAnotherOrder_AreAMismatch) {
  int failed = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto report = World({.ranks = 3, .seed = seed}).run([](RankContext& ctx) {
      if (ctx.rank() != 1) return void(ctx.new_group({0, 1, 2}, "a"));
      std::thread other([&] { ctx.new_group({0, 1, 2}, "b"); });
      std::this_thread::yield();
      ctx.new_group({0, 1, 2}, "a");
      other.join();
    });
    EXPECT_EQ(report.verdict, Verdict::mismatch) << report.headline;
    failed += report.headline.find("\"b\"") != std::string::npos ? 1 : 0;
  }
  EXPECT_GT(failed, 0);
}

TEST(ThreadsOfARank, ThatTakeTurns_AreNotRemarked) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto report = World({.ranks = 3, .seed = seed}).run([](RankContext& ctx) {
      for (int i = 0; i < 2; ++i) {
        std::thread([&] { ctx.group().allreduce(at::ones({4}))->wait(); }).join();
        ctx.group().allreduce(at::ones({4}))->wait();
      }
      std::promise<void> saved, go_on;  // a thread that lives on, and works on demand
      std::thread saver([&] {
        ctx.group().barrier()->wait();
        saved.set_value();
        go_on.get_future().wait();
      });
      saved.get_future().wait();
      ctx.group().allreduce(at::ones({4}))->wait();
      go_on.set_value();
      saver.join();
    });
    EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
    EXPECT_THAT(report.remarks, IsEmpty());
  }
}

// The next call of ranks 1 and 2 is the one that fails.
TEST(CaughtTimeouts, OfAStoreCallBeforeAMismatch_AreRemarked) {
  const auto report = World({.ranks = 3, .timeout = std::chrono::seconds(10)}).run([](RankContext& ctx) {
    int width = 4;
    if (ctx.rank() == 0) {
      exec::this_rank::sleep_for(std::chrono::seconds(2));
    } else {
      try {
        ctx.store()->get("width");
      } catch (const c10::DistStoreError&) {
        width = 8;
      }
    }
    ctx.group().allreduce(at::ones({width}))->wait();
  });
  EXPECT_THAT(report.remarks,
              Contains(HasSubstr("ranks 1-2: went on after store wait for key \"width\" had timed out")));
}

TEST(AbortedCalls, OfARankThatLeaves_AreTheCause) {
  const auto report = World({.ranks = 3}).run([](RankContext& ctx) {
    if (ctx.rank() == 2) exec::this_rank::sleep_for(std::chrono::milliseconds(20));
    const auto work = ctx.group().allreduce(at::ones({3}));
    ctx.rank() == 1 ? ctx.group()->getBackend(c10::DeviceType::CPU)->abort() : static_cast<void>(work->wait());
  });
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  EXPECT_THAT(report.headline, StartsWith("on rank 1 the program aborted allreduce #1 on group \"world\", which it had "
                                          "called; allreduce #1 on group \"world\": rank 1 has ended"));
  EXPECT_THAT(sim::to_text(report), HasSubstr("\nculprit: rank 1, after its last call at habits_test.cpp:"));
}

TEST(AbortedCalls, ThatOthersGaveUp_AreNoneThatTheRankNeverMade) {
  const auto report = World({.ranks = 3}).run([](RankContext& ctx) {
    if (ctx.rank() == 2) exec::this_rank::sleep_for(std::chrono::milliseconds(20));
    const auto work = ctx.group().allreduce(at::ones({3}));
    if (ctx.rank() == 1) return work->abort();
    EXPECT_ANY_THROW(work->wait(std::chrono::milliseconds(5)));
  });
  EXPECT_THAT(report.headline, Not(HasSubstr("rank 1 never came"))) << report.headline;
}

// The exception of the first wait skips the second one.
TEST(WaitsThatAFailureSkips, AreNoForgottenOnes) {
  const auto report = World({.ranks = 3, .timeout = std::chrono::milliseconds(10)}).run([](RankContext& ctx) {
    if (ctx.rank() == 2) return;
    try {
      const auto first = ctx.group().allreduce(at::ones({3})), second = ctx.group().allreduce(at::ones({4}));
      first->wait();
      second->wait();
    } catch (const CommError&) {
      exec::this_rank::sleep_for(std::chrono::milliseconds(50));
    }
  });
  EXPECT_THAT(report.remarks, Not(Contains(HasSubstr("nobody waited for")))) << sim::to_text(report);
}

}  // namespace
}  // namespace rehearse
