// SPDX-License-Identifier: BSD-3-Clause
// Contract: each of the most common bugs ends in a report that names mistake and culprit. The report is the same for
// every schedule, and has the same wording for every number of ranks. The run makes no unnecessary switches of fibers.
#include <array>
#include <chrono>
#include <functional>
#include <future>
#include <regex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <rehearse/sim/world.h>
#include <rehearse_internal/formatting/rank_list.h>
#include <rehearse_internal/sim/format_time.h>

#include "first_cases.h"
#include "report/writers/culprits.h"

namespace rehearse {
namespace {

using testing::ElementsAre;
using testing::MatchesRegex;
using testing::StartsWith;
using testing::UnorderedElementsAreArray;

struct Job {
  int ranks;
  std::string culprit;  // its number
  std::string others;   // as a report names them
};

std::string without_line_numbers(const std::string& text) {
  return std::regex_replace(text, std::regex(R"((\.cpp):\d+)"), "$1");
}

// Everything that the report says about a rank, except line numbers.
std::string told(const RankLine& line) {
  std::string text(to_string(line.state));
  if (!line.doing.empty()) text += ": " + line.doing;
  if (!line.waits_for.empty()) text += ", waits for " + describe_ranks(line.waits_for);
  if (!line.where.empty()) text += ", at " + without_line_numbers(line.where.text);
  if (!line.last.empty()) text += ", after " + line.last;
  return text + ", t=" + sim::format_time(line.at);
}

void expect_lines(const Job& job, const Report& report, const std::string& of_culprit, const std::string& of_others) {
  ASSERT_EQ(report.rank_lines.size(), static_cast<std::size_t>(job.ranks));
  for (const RankLine& line : report.rank_lines) {
    EXPECT_EQ(told(line), std::to_string(line.rank) == job.culprit ? of_culprit : of_others) << "rank " << line.rank;
  }
}

// Each rank needs to run only twice: until its wait, and then to its end. So a run makes few switches of fibers.
void for_each_world(const World::Body& body, const std::function<void(const Job& job, const Report& report)>& check) {
  const Job jobs[] = {{3, "1", "ranks 0,2"}, {4, "2", "ranks 0-1,3"}, {8, "4", "ranks 0-3,5-7"}};
  for (const Job& job : jobs) {
    for (const std::uint64_t seed : {1, 2, 3, 4}) {
      SCOPED_TRACE(testing::Message() << job.ranks << " ranks, seed " << seed);
      const auto report = World({.ranks = job.ranks, .seed = seed}).run(body);
      EXPECT_LE(report.switches, static_cast<std::uint64_t>(2 * job.ranks + 1));
      check(job, report);
    }
  }
}

TEST(FirstCases, MismatchedCollective_NamesBothCalls) {
  for_each_world(first_cases::mismatched_collective, [](const Job& job, const Report& report) {
    const std::string place = ", at first_cases.cpp in first_cases::mismatched_collective, t=0 ns";
    EXPECT_EQ(report.verdict, Verdict::mismatch);
    EXPECT_EQ(report.headline,
              "rank " + job.culprit + " called broadcast(root=0, float32[3], cpu) while " + job.others +
                  " called allreduce(sum, float32[3], cpu) as #1 of group \"world\": op broadcast, not allreduce");
    const std::string who = " #1 on group \"world\" (the ranks' calls do not match), waits for ";
    expect_lines(job, report, "blocked: broadcast" + who + job.others + place,
                 "blocked: allreduce" + who + "rank " + job.culprit + place);
  });
}

TEST(FirstCases, WrongRoot_NamesTheRoots) {
  for_each_world(first_cases::wrong_root, [](const Job& job, const Report& report) {
    const std::string place = ", at first_cases.cpp in first_cases::wrong_root, t=0 ns";
    const std::string call = "blocked: broadcast #1 on group \"world\" (the ranks' calls do not match), waits for ";
    EXPECT_EQ(report.verdict, Verdict::mismatch);
    EXPECT_EQ(report.headline,
              "rank " + job.culprit + " called broadcast(root=1, float32[3], cpu) while " + job.others +
                  " called broadcast(root=0, float32[3], cpu) as #1 of group \"world\": root 1, not 0");
    expect_lines(job, report, call + job.others + place, call + "rank " + job.culprit + place);
  });
}

// The report names the pair of ranks that do not fit, because nothing shows which of the two is wrong. The world may
// end before the other ranks call.
TEST(FirstCases, UnevenAllToAll_NamesTheEdge) {
  for_each_world(first_cases::uneven_alltoall, [](const Job& job, const Report& report) {
    const auto call = [&job](const std::string& receive) {
      std::string rest;
      for (int rank = 1; rank < job.ranks; ++rank) rest += ", 2";
      return "alltoall_base(float32[" + std::to_string(2 * job.ranks) + "], cpu, send [2" + rest + "], receive [" +
             receive + rest + "])";
    };
    EXPECT_EQ(report.verdict, Verdict::mismatch);
    EXPECT_EQ(report.headline, "ranks 0 and " + job.culprit +
                                   " disagree at #1 of group \"world\": rank 0 sends 2 elements to rank " +
                                   job.culprit + ", which expects 3; rank 0 called " + call("2") + ", rank " +
                                   job.culprit + " called " + call("3"));
    ASSERT_EQ(report.differences.size(), 1u);
    ASSERT_EQ(report.differences[0].fields.size(), 1u);
    const auto& field = report.differences[0].fields[0];
    EXPECT_EQ(field.name, "splits of rank 0 to rank " + job.culprit);
    EXPECT_EQ(field.first, "sends 2");
    EXPECT_EQ(field.second, "expects 3");
    for (const RankLine& line : report.rank_lines) {
      const auto rank = std::to_string(line.rank);
      const auto both = std::string(job.culprit == "1" ? "ranks 0-" : "ranks 0,") + job.culprit;
      const auto whom = rank == "0" ? "rank " + job.culprit : rank == job.culprit ? "rank 0" : both;
      const bool on_its_way = line.rank != 0 && rank != job.culprit && line.state == RankOutcome::stopped;
      const auto stands = "blocked: alltoall_base #1 on group \"world\" (the ranks' calls do not match), waits for " +
                          whom + ", at first_cases.cpp in first_cases::uneven_alltoall, t=0 ns";
      EXPECT_EQ(told(line), on_its_way ? "stopped, t=0 ns" : stands) << "rank " << rank;
    }
  });
}

// The words of a report, for example "3 of 4 ranks have called it".
std::string arrived(int ranks, const Job& job) {
  return std::to_string(ranks) + " of " + std::to_string(job.ranks) + " ranks " + (ranks == 1 ? "has" : "have") +
         " called it";
}

TEST(FirstCases, RankReturnsEarly_IsADeadlockWithItsName) {
  for_each_world(first_cases::returns_early, [](const Job& job, const Report& report) {
    const auto end = ", after allreduce #1 on group \"world\", t=" + std::to_string(10 * (job.ranks - 1)) + " us";
    EXPECT_EQ(report.verdict, Verdict::deadlock);
    EXPECT_EQ(report.headline,
              "allreduce #2 on group \"world\": rank " + job.culprit + " has ended and will never come");
    expect_lines(job, report, "returned" + end,
                 "blocked: allreduce #2 on group \"world\" (" + arrived(job.ranks - 1, job) + "), waits for rank " +
                     job.culprit + ", at first_cases.cpp in first_cases::returns_early" + end);
  });
}

// Each rank counts its own receives.
TEST(FirstCases, SenderReturnsEarly_IsOneDeadlockForReceivesOfAnyNumber) {
  const auto report = World({.ranks = 3}).run([](RankContext& ctx) {
    auto value = at::zeros({1});
    if (ctx.rank() == 0) ctx.group().send(value, 2, 0)->wait();
    for (int times = 0; times < ctx.rank(); ++times) ctx.group().recv(value, 0, 0)->wait();
  });
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  EXPECT_EQ(report.headline, "recv from rank 0 on group \"world\": rank 0 has ended and will never come");
}

TEST(FirstCases, CallsOfABatch_HaveTheirOwnPlaces) {
  std::array<int, 2> lines{};
  const auto report = World({.ranks = 2}).run([&lines](RankContext& ctx) {
    std::vector<at::Tensor> sent{at::ones({1}, at::kInt)}, received{at::zeros({1})};
    const int peer = 1 - ctx.rank();
    lines = {__LINE__ + 2, __LINE__ + 3};
    ctx.group()->startCoalescing(at::kCPU);
    ctx.group()->send(sent, peer, 0);
    ctx.group()->recv(received, peer, 0);
    ctx.group()->endCoalescing(at::kCPU)->wait();
  });
  ASSERT_EQ(report.differences.size(), 1u);
  const auto& [first, second] = std::pair(report.differences[0].first, report.differences[0].second);
  EXPECT_THAT((std::array{first.where.line, second.where.line}), UnorderedElementsAreArray(lines));
}

// In a ring of four, rank 1 sends to rank 3. The ranks that the headline names first have made no mistake.
TEST(FirstCases, SendToAWrongPeer_IsNamedBesideTheRankThatAwaitsIt) {
  const auto report = World({.ranks = 4}).run([](RankContext& ctx) {
    auto value = at::ones({1}), received = at::zeros({1});
    const int peer = ctx.rank() == 1 ? 3 : (ctx.rank() + 1) % ctx.size();
    const auto send = ctx.group().send(value, peer, 0);
    ctx.group().recv(received, (ctx.rank() + 3) % ctx.size(), 0)->wait();
    send->wait();
  });
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  EXPECT_THAT(report.headline,
              MatchesRegex("send #1 to rank 3 on group \"world\": rank 3 has ended and will never come; "
                           "rank 2 receives from rank 1 at first_cases_test.cpp:[0-9]+ in .*, while "
                           "rank 1 sends to rank 3 at first_cases_test.cpp:[0-9]+ in .*"));
}

// Rank 2 receives from its other neighbour once, so it and rank 3 wait for each other. Rank 3 has made no mistake.
TEST(FirstCases, ReceiveFromAWrongPeer_BlamesOnlyTheEndsOfTheStraySend) {
  const auto report = World({.ranks = 6}).run([](RankContext& ctx) {
    const int ranks = ctx.size();
    for (int step = 0; step < 3; ++step) {
      auto value = at::ones({3}), received = at::zeros({3});
      const bool is_wrong = ctx.rank() == 2 && step == 1;
      const auto receive = ctx.group().recv(received, (ctx.rank() + (is_wrong ? 1 : ranks - 1)) % ranks);
      const auto send = ctx.group().send(value, (ctx.rank() + 1) % ranks);
      receive->wait();
      send->wait();
    }
  });
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  EXPECT_EQ(sim::culprits_of(report), std::vector{2});
}

// Ranks 2 and 3 both send first. Rank 1 waits for one of them in its right order, so it and rank 0 have made no
// mistake.
TEST(FirstCases, SendsThatMeet_AreTheCycle_WhoeverWaitsForItsRanks) {
  for (const int awaited : {2, 3}) {
    const auto report = World({.ranks = 4}).run([awaited](RankContext& ctx) {
      const int rank = ctx.rank();
      auto value = at::ones({4}), received = at::zeros({4});
      if (rank == 0) ctx.group().send(value, 1)->wait();
      if (rank == 1) ctx.group().recv(received, awaited)->wait();
      if (rank == 1) ctx.group().recv(received, 0)->wait();
      if (rank >= 2) ctx.group().send(value, 5 - rank)->wait();
      if (rank >= 2) ctx.group().recv(received, 5 - rank)->wait();
      if (rank == awaited) ctx.group().send(value, 1)->wait();
    });
    EXPECT_EQ(report.verdict, Verdict::deadlock);
    EXPECT_THAT(report.headline, MatchesRegex("ranks 2 -> 3 -> 2 wait for each other: rank 2 in send #1 to rank 3 .*"));
    EXPECT_THAT(report.headline, testing::Not(testing::HasSubstr("receives from")));
    EXPECT_EQ(sim::culprits_of(report), (std::vector{2, 3})) << awaited;
  }
}

// The rank's thread waits for a key that the exception keeps the rank from setting. The exception leaves the rank after
// the timeout, beside the timeouts of the others, whichever comes first.
TEST(FirstCases, ExceptionWhoseDestructorsHang_IsTheSameDeadlockOnAllSeeds) {
  for (const std::uint64_t seed : {1, 2, 3, 4, 5, 6}) {
    const auto report = World({.ranks = 3, .seed = seed}).run([](RankContext& ctx) {
      const auto store = ctx.store();
      const auto flush = std::async(std::launch::async, [&] { store->get("flush/" + std::to_string(ctx.rank())); });
      for (int step = 0; step < 3; ++step) {
        if (ctx.rank() == 1 && step == 1) throw std::runtime_error("loss is NaN");
        ctx.group().allreduce(at::ones({2}))->wait();
      }
      store->set("flush/" + std::to_string(ctx.rank()), std::string("1"));
    });
    EXPECT_EQ(report.verdict, Verdict::deadlock) << seed;
    EXPECT_THAT(report.headline,
                MatchesRegex("rank 1 was unwinding an exception, 'loss is NaN', thrown at first_cases_test.cpp:[0-9]+ "
                             "in .*; rank 1 waits forever in store wait for key \"flush/1\", which is not set.*"))
        << seed;
    EXPECT_EQ(sim::culprits_of(report), std::vector{1}) << seed;
  }
}

// The error of the wait unwinds a std::thread that nobody has joined, which ends the rank.
TEST(FirstCases, RankReturnsEarly_WithAThreadOnTheOthersStacks_IsTheSameDeadlock) {
  const auto report = World({.ranks = 2}).run([](RankContext& ctx) {
    if (ctx.rank() == 1) return;
    std::thread helper([] {});
    ctx.group().allreduce(at::ones({1}))->wait();
    helper.join();
  });
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  EXPECT_EQ(report.headline,
            "allreduce #1 on group \"world\": rank 1 has ended and will never come (as the error of a wait unwound "
            "rank 0, a destructor failed: std::terminate() was called; it may be that a std::thread was destroyed "
            "before its join())");
}

// The same for a mismatch: the threads' ranks stand in their calls, and none has failed.
TEST(FirstCases, MismatchWithAThreadOnTheStacks_IsOneInWhichAllRanksStand) {
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    const auto report = World({.ranks = 3, .seed = seed}).run([](RankContext& ctx) {
      std::thread helper([&] { ctx.store()->wait({"stop"}); });
      ctx.group().allreduce(at::ones({ctx.rank() == 1 ? 3 : 4}))->wait();
      helper.join();
    });
    EXPECT_EQ(report.verdict, Verdict::mismatch);
    for (const auto& line : report.rank_lines)
      EXPECT_EQ(line.state, RankOutcome::blocked) << seed << ": " << line.doing;
  }
}

TEST(FirstCases, LateRank_IsATimeoutAfterThirtyMinutes) {
  for_each_world(first_cases::comes_late, [](const Job& job, const Report& report) {
    const std::string place = " at first_cases.cpp in first_cases::comes_late";
    EXPECT_EQ(report.verdict, Verdict::timeout);
    EXPECT_EQ(report.end_time, kTimeZero + std::chrono::minutes(30));
    EXPECT_EQ(without_line_numbers(report.headline),
              "rank " + job.culprit + " was still in a sleep" + place + "; " + job.others +
                  " waited for it in allreduce #1 on group \"world\" until the timeout at 1800 s; rank " + job.culprit +
                  " never called allreduce #1 on group \"world\"");
    expect_lines(job, report, "blocked: a sleep," + place + ", t=1800 s",
                 "failed: allreduce #1 on group \"world\": Timed out waiting 1800000ms of virtual time; missing rank " +
                     job.culprit + "," + place + ", t=1800 s");
  });
}

TEST(FirstCases, SwappedOrderOnTwoGroups_ShowsTheCycle) {
  for_each_world(first_cases::swaps_two_groups, [](const Job& job, const Report& report) {
    const std::string place = ", at first_cases.cpp in first_cases::swaps_two_groups, t=0 ns";
    const auto here = [&job](int ranks) { return " (" + arrived(ranks, job) + "), waits for "; };
    EXPECT_EQ(report.verdict, Verdict::deadlock);
    EXPECT_EQ(report.headline, "ranks 0 -> " + job.culprit +
                                   " -> 0 wait for each other: rank 0 in allreduce #1 on "
                                   "group \"a\", rank " +
                                   job.culprit + " in allreduce #1 on group \"b\"");
    EXPECT_THAT(
        report.wait_cycle,
        ElementsAre(StartsWith("rank 0 waits for rank " + job.culprit + " (allreduce #1 on group \"a\") at first"),
                    StartsWith("rank " + job.culprit + " waits for rank 0 (allreduce #1 on group \"b\") at ")));
    expect_lines(job, report, "blocked: allreduce #1 on group \"b\"" + here(1) + job.others + place,
                 "blocked: allreduce #1 on group \"a\"" + here(job.ranks - 1) + "rank " + job.culprit + place);
  });
}

}  // namespace
}  // namespace rehearse
