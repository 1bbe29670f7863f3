// SPDX-License-Identifier: BSD-3-Clause
// Contract: if several calls timed out, the report blames the call that made the rank fail, not a call whose timeout
// the program caught. If a rank came to a call after its timeout, the report does not say that the rank never comes.
#include "report/ranks/timeouts.h"

#include <string>
#include <thread>
#include <vector>

#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <rehearse/comm/errors.h>
#include <rehearse/sim/world.h>
#include <rehearse_internal/exec/this_rank.h>

// These tests are outside namespace rehearse, because without line tables, reports take the functions of that namespace
// for library code.
namespace timeouts_test {
namespace {

using namespace rehearse;
using namespace std::chrono_literals;
using exec::this_rank::sleep_for;
using sim::root_of_timeout;
using sim::wait_behind;

constexpr auto kCall = "allreduce #2 on group \"world\"";

exec::RankFailure failure(int rank, const std::string& what, std::vector<int> ranks, VirtualDuration at) {
  exec::RankFailure failure;
  failure.rank = rank;
  failure.error = std::make_exception_ptr(TimeoutError(what, "world", 2, std::move(ranks)));
  failure.what = what;
  failure.at = kTimeZero + at;
  return failure;
}

exec::RankFailure timed_out(std::vector<int> missing = {1}, VirtualDuration at = 3s) {
  return failure(0, std::string(kCall) + ": Timed out waiting 1000ms of virtual time; missing rank 1",
                 std::move(missing), at);
}

exec::RankFailure came_late(int rank, std::vector<int> timed_out_on) {
  return failure(rank, std::string(kCall) + " is over: it timed out on rank 0 at 3000 ms of virtual time",
                 std::move(timed_out_on), 3s);
}

TEST(WaitBehind, ATimeout_IsTheWaitThatMetIt) {
  auto own = timed_out();
  EXPECT_EQ(wait_behind(own), nullptr) << "it was not waiting";
  own.gave_up = {kCall, {1}, kTimeZero + 3s};
  EXPECT_EQ(wait_behind(own), &*own.gave_up);
  own.gave_up->at = kTimeZero + 2s;
  EXPECT_EQ(wait_behind(own), &*own.gave_up) << "destructors took a second";
  // A barrier fails together with the call before it.
  own.gave_up = {"barrier #3 on group \"world\"", {1}, kTimeZero + 3s};
  EXPECT_EQ(wait_behind(own), &*own.gave_up);
}

TEST(WaitBehind, ATimeout_IsNoWaitWhoseTimeoutWasCaught) {
  auto own = timed_out();
  own.gave_up = {"allreduce #1 on group \"world\"", {1}, kTimeZero + 1s};
  EXPECT_EQ(wait_behind(own), nullptr);
  own.gave_up = {kCall, {1, 2}, kTimeZero + 1s};
  EXPECT_EQ(wait_behind(own), nullptr) << "rank 2 has come since";
  auto late = came_late(1, {0});
  late.gave_up = {kCall, {0}, kTimeZero + 3s};
  EXPECT_EQ(wait_behind(late), nullptr) << "the time of another rank was over";
}

TEST(WaitBehind, AnErrorOfTheStore_IsNoWaitForRanks) {
  exec::RankFailure of_store;
  of_store.error = std::make_exception_ptr(c10::DistStoreError("wait timeout after 5ms, keys: k", nullptr));
  of_store.gave_up = {kCall, {1}, of_store.at};
  EXPECT_EQ(wait_behind(of_store), nullptr);
  of_store.gave_up = {"store wait for key \"k\"", {}, of_store.at};
  EXPECT_EQ(wait_behind(of_store), &*of_store.gave_up);
}

TEST(RootOfTimeout, OfARankThatCameLate_IsTheRankThatTimedOut) {
  const std::vector<exec::RankFailure> all{came_late(1, {0}), came_late(2, {0}), timed_out()};
  EXPECT_EQ(&root_of_timeout(all[0], all), &all[2]);
  EXPECT_EQ(&root_of_timeout(all[2], all), &all[2]) << "rank 1, which it misses, is no root";
  const std::vector<exec::RankFailure> alone{came_late(1, {0})};
  EXPECT_EQ(&root_of_timeout(alone[0], alone), &alone[0]) << "rank 0 has caught it";
}

Report run(const World::Body& body, std::chrono::milliseconds timeout = 1s, std::uint64_t seed = 1) {
  return World({.ranks = 2, .seed = seed, .timeout = timeout}).run(body);
}

void survives(const Group& group, at::Tensor& t) { EXPECT_THROW(group.allreduce(t)->wait(), TimeoutError); }

// A sleeping rank misses the first call, and both ranks catch the timeout. Rank 0 makes the second call so shortly
// before the end of rank 1's timeout that the transfer is too late.
TEST(TimedOutCalls, AfterASurvivedTimeout_AreReportedWithoutIt) {
  for (const std::uint64_t seed : {1, 2, 3, 4, 5, 6}) {
    const auto report = run(
        [](RankContext& ctx) {
          auto t = at::ones({4});
          if (ctx.rank() == 1) sleep_for(2s);
          survives(ctx.group(), t);
          if (ctx.rank() == 0) sleep_for(2s);
          ctx.group().allreduce(t)->wait();
        },
        1s, seed);
    EXPECT_EQ(report.verdict, Verdict::timeout);
    EXPECT_EQ(report.headline,
              "rank 1: allreduce #2 on group \"world\": Timed out waiting 1000ms of virtual time; all ranks have "
              "called it, but the transfer takes longer")
        << seed;
  }
}

// Rank 0 catches the timeout of call #1, and comes late to call #2. The report blames rank 0 only for call #2.
TEST(TimedOutCalls, OfARankThatCameLateAfterASurvivedOne_AreThoseItCameLateTo) {
  const auto report = run([](RankContext& ctx) {
    auto t = at::ones({4});
    if (ctx.rank() == 1) sleep_for(2s);
    survives(ctx.group(), t);  // rank 0 at 1 s, rank 1 at 2 s
    if (ctx.rank() == 0) sleep_for(5s);
    if (ctx.rank() == 1) return survives(ctx.group(), t);  // at 3 s
    ctx.group().allreduce(t)->wait();                      // at 6 s
  });
  EXPECT_EQ(report.verdict, Verdict::timeout);
  EXPECT_TRUE(
      report.headline.starts_with("rank 0: allreduce #2 on group \"world\" is over: it timed out on rank 1 at "))
      << report.headline;
}

// A short wait times out, the other rank comes, and then the call itself times out.
TEST(TimedOutCalls, AfterAWaitInVainForTheSameCall_BlameNoRankThatHasCome) {
  WorldOptions options{.ranks = 2, .timeout = 1s};
  options.faults.push_back(parse_fault("delay rank=1 call=allreduce for=10s"));
  const auto report = World(options).run([](RankContext& ctx) {
    auto t = at::ones({4});
    if (ctx.rank() == 1) sleep_for(500ms);
    const auto work = ctx.group().allreduce(t);
    if (ctx.rank() == 0) {
      EXPECT_THROW(work->wait(10ms), TimeoutError);
      sleep_for(2s);
    }
    work->wait();
  });
  EXPECT_EQ(report.verdict, Verdict::timeout) << report.headline;
  EXPECT_EQ(report.headline.find("has ended"), std::string::npos) << report.headline;
  EXPECT_EQ(report.headline.find("missing"), std::string::npos) << report.headline;
}

// Rank 0 comes exactly at the limit. Which comes first is up to the schedule.
TEST(TimedOutCalls, OfARankThatComesAtTheLimit_DoNotSayThatItNeverComes) {
  int late = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const auto report = World({.ranks = 3, .seed = seed, .timeout = 10s}).run([](RankContext& ctx) {
      if (ctx.rank() == 0) sleep_for(10s);
      ctx.group().barrier()->wait();
    });
    EXPECT_EQ(report.verdict, Verdict::timeout) << report.headline;
    EXPECT_EQ(report.headline.find("will never come"), std::string::npos) << report.headline;
    late += report.headline.find(
                "rank 0 came to barrier #1 on group \"world\" only when the timeout at 10 s had ended "
                "the wait of rank ") == 0;
  }
  EXPECT_GT(late, 0);
}

// The timeout of a thread that catches it frees rank 0 at the moment at which rank 1's limit is over.
TEST(TimedOutCalls, BehindATimeoutThatAThreadCaught_NameItsCall) {
  const auto report = World({.ranks = 2}).run([](RankContext& ctx) {
    const auto pair = ctx.new_group({0, 1}, "pair");
    std::thread helper([&] {
      if (ctx.rank() == 1) return;
      auto t = at::ones({4});
      survives(pair, t);
    });
    ctx.group().barrier()->wait();
    helper.join();
    ctx.group().barrier()->wait();
  });
  EXPECT_EQ(report.verdict, Verdict::timeout);
  EXPECT_NE(report.headline.find("; rank 0 gave up allreduce #1 on group \"pair\", to which rank 1 never came"),
            std::string::npos)
      << report.headline;
}

// As with Gloo, the aborted receive stays open, and nobody need send to it.
TEST(AbortedWaits, OfAReceiveThatNobodyMeets_AreOk) {
  const auto report = World({.ranks = 2}).run([](RankContext& ctx) {
    if (ctx.rank() == 0) return;
    auto cancel = at::zeros({1});
    const auto work = ctx.group().recv(cancel, 0, 5);
    bool came = true;
    std::thread listener([&] { came = work->wait(); });
    ctx.compute(std::chrono::milliseconds(1));
    work->abort();
    listener.join();
    ctx.expect(!came, "the wait was aborted");
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_NE(report.headline.find("; rank 1 gave up recv #1 from rank 0 with tag 5"), std::string::npos);
}

}  // namespace
}  // namespace timeouts_test
