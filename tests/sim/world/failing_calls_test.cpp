// SPDX-License-Identifier: BSD-3-Clause
// Contract: a program that repeats failing calls forever ends as a livelock, whatever the calls and their failures. The
// world needs little real time for this, and the report names the rank. Virtual time passes meanwhile, so that an event
// for which the program waits may come.
#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/ops/ones.h>

#include <rehearse/comm/errors.h>
#include <rehearse/sim/world.h>
#include <rehearse_internal/exec/this_rank.h>

// Programs as users write them.
namespace failing {

using rehearse::Group;
using rehearse::RankContext;

void tries_again_for_ever(const std::function<void()>& call) {
  for (;;) {
    try {
      return call();
    } catch (const c10::Error&) {
    }
  }
}

void with_arguments_that_make_no_sense(RankContext& ctx) {
  if (ctx.rank() == 1) tries_again_for_ever([&] { ctx.group().broadcast(at::ones({2}), 7)->wait(); });
}

// Swallows every error, including RankAborted, in a loop whose calls all fail before they block.
void and_swallows_all(RankContext& ctx) {
  for (;;) {
    try {
      return void(ctx.group().recv(at::ones({2}), 99)->wait());
    } catch (const std::exception&) {
    }
  }
}

void with_an_error_of_the_back_end(RankContext& ctx) {
  tries_again_for_ever([&] { ctx.group().allreduce(at::ones({2}))->wait(); });
}

void with_a_call_that_timed_out(RankContext& ctx) {
  if (ctx.rank() != 1) return;
  const auto work = ctx.group().allreduce(at::ones({2}));
  tries_again_for_ever([&] { work->wait(); });
}

void with_a_peer_that_is_gone(RankContext& ctx) {
  tries_again_for_ever([&] { ctx.group().barrier()->wait(); });
  if (ctx.rank() == 1) tries_again_for_ever([&] { ctx.group().send(at::ones({1}), 0)->wait(); });
}

void with_a_store_that_refuses(RankContext& ctx) {
  if (ctx.rank() == 1) tries_again_for_ever([&] { ctx.store()->set("key", "value"); });
}

void with_a_key_that_is_no_number(RankContext& ctx) {
  if (ctx.rank() != 1) return;
  ctx.store()->set("count", "many");
  for (;;) {
    try {
      ctx.store()->add("count", 1);
      return;
    } catch (const std::invalid_argument&) {
    }
  }
}

void with_a_key_that_never_comes(RankContext& ctx) {
  ctx.store()->setTimeout(std::chrono::milliseconds(1));
  if (ctx.rank() == 1) tries_again_for_ever([&] { ctx.store()->get("never"); });
}

// The others wait in one call, and cannot know that rank 1 will not come.
void beside_ranks_that_just_wait(RankContext& ctx) {
  const auto tensor = at::ones({1});
  if (ctx.rank() == 1) {
    const auto message = ctx.group().recv(tensor, 0);
    tries_again_for_ever([&] { message->wait(std::chrono::milliseconds(10)); });
  }
  ctx.group().allreduce(tensor)->wait();
}

void for_a_key_beside_ranks_that_just_wait(RankContext& ctx) {
  with_a_key_that_never_comes(ctx);
  ctx.group().barrier()->wait();
}

}  // namespace failing

namespace rehearse {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::MatchesRegex;

WorldOptions world_with(const std::string& fault) {
  WorldOptions options{.ranks = 2, .explain_failures = false};
  if (!fault.empty()) options.faults.push_back(parse_fault(fault));
  return options;
}

void expect_livelock(const World::Body& body, const std::string& fault, const std::string& error) {
  const auto report = World(world_with(fault)).run(body);
  EXPECT_EQ(report.verdict, Verdict::livelock) << report.headline;
  EXPECT_THAT(report.headline, HasSubstr("rank 1 repeats failing calls forever, at failing_calls_test.cpp:"));
  EXPECT_THAT(report.headline, HasSubstr(": 20000 calls in a row failed while nothing else happened"));
  EXPECT_THAT(report.headline, HasSubstr(error));
  EXPECT_LT(report.end_time, kTimeZero + 10min + (error.empty() ? 30min : 0min));
  EXPECT_LT(report.switches, 200'000u);
}

// If the other rank fails, its failure is the verdict. If it returns, the world ends as a livelock. Both statements
// hold although rank 1 catches everything.
TEST(FailingCalls, OfARankThatSwallowsAll_DelayNoOtherRank) {
  const auto throws = World(world_with("")).run([](RankContext& ctx) {
    if (ctx.rank() == 1) failing::and_swallows_all(ctx);
    exec::this_rank::sleep_for(100ms);
    throw std::runtime_error("rank 0 is broken");
  });
  EXPECT_EQ(throws.verdict, Verdict::rank_failed) << throws.headline;
  EXPECT_EQ(throws.headline, "rank 0: rank 0 is broken");
  const auto returns = World(world_with("")).run([](RankContext& ctx) {
    if (ctx.rank() == 1) failing::and_swallows_all(ctx);
  });
  EXPECT_EQ(returns.verdict, Verdict::livelock) << returns.headline;
  EXPECT_THAT(returns.headline, HasSubstr("20000 calls in a row failed while nothing else happened"));
}

TEST(FailingCalls, WithoutEnd_AreALivelock) {
  expect_livelock(failing::with_arguments_that_make_no_sense, "", "");
  expect_livelock(failing::with_an_error_of_the_back_end, "fail_op rank=1 call=allreduce times=1000000",
                  "the last error: allreduce #1 on group \"world\" failed: an injected error of the back end");
  expect_livelock(failing::with_a_peer_that_is_gone, "crash rank=0 call=barrier#1 peers=disconnect",
                  "the last error: barrier #2 on group \"world\" failed: rank 0 closed the connection");
}

TEST(FailingCalls, OfTheStoreAlone_AreALivelock) {
  expect_livelock(failing::with_a_store_that_refuses, "fail_op rank=1 call=set times=1000000",
                  "the last error: set of key \"key\" failed: an injected error of the store");
  expect_livelock(failing::with_a_key_that_is_no_number, "", "the last error: stoll");
}

// The call itself takes time, but its failure takes none.
TEST(FailingCalls, OfASlowStore_AreALivelock) {
  auto options = world_with("");
  options.network.store = 1ms;
  const auto report = World(options).run(failing::with_a_key_that_is_no_number);
  EXPECT_EQ(report.verdict, Verdict::livelock) << report.headline;
  EXPECT_THAT(report.headline, HasSubstr(": 20000 calls in a row failed while nothing else happened"));
}

TEST(FailingCalls, WaitsForAKeyThatNeverComes_AreALivelock) {
  for (const auto store_time : {0us, 10us}) {
    auto options = world_with("");
    options.network.store = store_time;
    const auto report = World(options).run(failing::with_a_key_that_never_comes);
    EXPECT_EQ(report.verdict, Verdict::livelock) << report.headline;
    EXPECT_THAT(report.headline,
                HasSubstr("rank 1 waits forever in store wait for key \"never\", which is not set, at failing_calls"));
    EXPECT_THAT(report.headline, HasSubstr("20000 timeouts in a row while nothing else happened"));
    EXPECT_LT(report.end_time, kTimeZero + 21s);
  }
}

// The report names the rank that repeats its wait, not those that stay in one call.
TEST(FailingCalls, WaitsBesideOthersThatJustWait_AreReported) {
  auto options = world_with("");
  options.ranks = 3;
  const auto of_a_message = World(options).run(failing::beside_ranks_that_just_wait);
  EXPECT_EQ(of_a_message.verdict, Verdict::livelock);
  EXPECT_THAT(
      of_a_message.headline,
      MatchesRegex("rank 1 repeats its wait for recv #1 from rank 0 on group \"world\" forever, at failing_calls.*: "
                   "rank 0 never came to that call \\(20000 timeouts in a row while nothing else happened\\)"));
  const auto of_a_key = World(options).run(failing::for_a_key_beside_ranks_that_just_wait);
  EXPECT_EQ(of_a_key.verdict, Verdict::livelock);
  EXPECT_THAT(of_a_key.headline, MatchesRegex("rank 1 waits forever in store wait for key \"never\", which is not set, "
                                              "at failing_calls.* \\(20000 timeouts in "
                                              "a row while nothing else happened\\)"));
}

// Another rank sets the key after its sleep, however often the wait has timed out before.
TEST(FailingCalls, WaitsForAKeyOfARankThatSleeps_AreNone) {
  const auto report = World(world_with("")).run([](RankContext& ctx) {
    if (ctx.rank() == 0) {
      exec::this_rank::sleep_for(30s);
      return ctx.store()->set("never", "after all");
    }
    failing::with_a_key_that_never_comes(ctx);
    EXPECT_EQ(ctx.now(), kTimeZero + 30s);
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
}

// Failures of the store and of the group are counted separately: a failed call of one does not delay the next call of
// the other.
TEST(FailingCalls, OfTheStore_CostTheNextCallOfTheStore) {
  const auto report = World(world_with("fail_op rank=1 call=set times=2")).run([](RankContext& ctx) {
    if (ctx.rank() == 0) return void(ctx.group().barrier()->wait());
    EXPECT_THROW(ctx.store()->set("key", "value"), c10::DistStoreError);
    EXPECT_EQ(ctx.now(), kTimeZero);
    const auto barrier = ctx.group().barrier();
    EXPECT_EQ(ctx.now(), kTimeZero);
    EXPECT_THROW(ctx.store()->set("key", "value"), c10::DistStoreError);
    EXPECT_EQ(ctx.now(), kTimeZero + 5us);
    ctx.store()->set("key", "value");
    EXPECT_EQ(ctx.now(), kTimeZero + 10us);
    barrier->wait();
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
}

TEST(FailingCalls, WaitsForACallThatTimedOut_AreALivelock) {
  const auto report = World(world_with("")).run(failing::with_a_call_that_timed_out);
  EXPECT_EQ(report.verdict, Verdict::livelock) << report.headline;
  EXPECT_THAT(report.headline, HasSubstr("allreduce #1 on group \"world\""));
}

TEST(FailingCalls, UntilAnotherRankIsThere_AreNone) {
  const auto report = World(world_with("fail_op rank=1 call=allreduce times=1000000")).run([](RankContext& ctx) {
    if (ctx.rank() == 0) {
      exec::this_rank::sleep_for(10s);
      return ctx.store()->set("ready", "yes");
    }
    while (ctx.store()->compareSet("ready", "", "") != "yes") {
      EXPECT_THROW(ctx.group().allreduce(at::ones({2})), CommError);
    }
    EXPECT_LT(ctx.now(), kTimeZero + 11s);
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
}

// The first failure takes no time, nor does a failure after a pause of the program.
TEST(FailingCalls, CostAsMuchAsALook) {
  const auto report = World(world_with("fail_op rank=1 call=allreduce times=5")).run([](RankContext& ctx) {
    if (ctx.rank() == 0) return;
    const auto fail = [&] { EXPECT_THROW(ctx.group().allreduce(at::ones({2})), CommError); };
    fail();
    EXPECT_EQ(ctx.now(), kTimeZero);
    fail();
    EXPECT_EQ(ctx.now(), kTimeZero + 5us);
    exec::this_rank::sleep_for(1ms);
    fail();
    EXPECT_EQ(ctx.now(), kTimeZero + 1005us);
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(report.end_time, kTimeZero + 1005us);
}

}  // namespace
}  // namespace rehearse
