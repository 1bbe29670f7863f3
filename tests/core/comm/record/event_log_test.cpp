// SPDX-License-Identifier: BSD-3-Clause
// Contract: one record per call, with the flight recorder's fields. Equal runs have equal hashes, and any difference
// that a user could see gives another hash.
#include "core/comm/test_world.h"

namespace rehearse::comm {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

class EventLogTest : public CommTest {
 protected:
  std::uint64_t run_example(std::int64_t size = 2, VirtualDuration pause = 0ns, int ranks = 2) {
    fabric.takes = 2ms;
    const auto outcome = run(ranks, [=](int rank, const ProcessGroup& group) {
      if (rank == 1) exec::this_rank::sleep_for(pause);
      broadcast(group, at::ones({3}))->wait();
      allreduce(group, at::ones({size}))->wait();
      if (rank == 0) send(group, at::ones({4}), 1, 7)->wait();
      if (rank == 1) recv(group, at::ones({4}), 0, 7)->wait();
    });
    EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
    return events->hash();
  }
};

TEST_F(EventLogTest, FlightRecord_HasTheRecordersFields) {
  run_example(2, 1ms);
  const auto of_rank_0 = events->of_rank(0);
  ASSERT_EQ(of_rank_0.size(), 3u);
  EXPECT_EQ(events->title(of_rank_0[1]), "allreduce #2 on group \"world\"");
  EXPECT_EQ(events->signature(of_rank_0[1]).fingerprint, "allreduce(sum, float32[2], cpu)");

  const auto first = events->flight_record(of_rank_0[0]);
  EXPECT_EQ(first.record_id, 0u);
  EXPECT_EQ(first.process_group_name, "world");
  EXPECT_EQ(first.collective_seq_id, 1u);
  EXPECT_EQ(first.p2p_seq_id, 0u);
  EXPECT_EQ(first.op_id, 1u);
  EXPECT_EQ(first.profiling_name, "nccl:broadcast");
  EXPECT_EQ(first.time_created_ns, 0);
  EXPECT_EQ(first.time_discovered_started_ns, 1'000'000);
  EXPECT_EQ(first.time_discovered_completed_ns, 3'000'000);
  EXPECT_EQ(first.duration_ms, 2.0);
  EXPECT_THAT(first.input_sizes, ElementsAre(ElementsAre(3)));
  EXPECT_THAT(first.output_sizes, ElementsAre(ElementsAre(3)));
  EXPECT_THAT(first.input_dtypes, ElementsAre("Float"));
  EXPECT_EQ(first.state, "completed");
  EXPECT_TRUE(first.retired);
  EXPECT_EQ(first.timeout_ms, 1'800'000u);
  EXPECT_FALSE(first.is_p2p);

  const auto sent = events->flight_record(of_rank_0[2]);
  EXPECT_EQ(sent.profiling_name, "nccl:send 0->1");
  EXPECT_EQ(sent.collective_seq_id, 2u);
  EXPECT_EQ(sent.p2p_seq_id, 1u);
  EXPECT_EQ(sent.op_id, 3u);
  EXPECT_TRUE(sent.is_p2p);
  EXPECT_THAT(sent.output_sizes, ElementsAre());
  EXPECT_EQ(events->flight_record(events->of_rank(1)[2]).profiling_name, "nccl:recv 1<-0");
}

TEST_F(EventLogTest, State_GoesFromScheduledToStarted) {
  fabric.takes = -1ns;
  run(2, [](int rank, const ProcessGroup& group) {
    broadcast(group, at::ones({1}));
    if (rank == 0) group->barrier();
  });
  const auto events_of_0 = events->of_rank(0);
  EXPECT_EQ(events->flight_record(events_of_0.at(0)).state, "started");
  EXPECT_EQ(events->flight_record(events_of_0.at(1)).state, "scheduled");
  EXPECT_EQ(events->flight_record(events_of_0.at(1)).profiling_name, "nccl:all_reduce_barrier");
  EXPECT_EQ(events->last_completed(0), nullptr);
}

// Rank 1 never comes, so rank 0's call times out after 5 ms. Rank 0 aborts its barrier 2 ms later.
TEST_F(EventLogTest, CallThatFailed_EndedThenAndIsNotComplete) {
  options.timeout = 5ms;
  run(2, [](int rank, const ProcessGroup& group) {
    if (rank == 1) return exec::this_rank::sleep_for(1s);
    EXPECT_THROW(allreduce(group, at::ones({1}))->wait(), TimeoutError);
    const auto barrier = group->barrier();
    exec::this_rank::sleep_for(2ms);
    barrier->abort();
    EXPECT_THROW(barrier->wait(), CommError);
  });
  const auto of_rank_0 = events->of_rank(0);
  ASSERT_EQ(of_rank_0.size(), 2u);
  EXPECT_EQ(of_rank_0[0].time_ended, kTimeZero + 5ms);
  EXPECT_EQ(of_rank_0[1].time_ended, kTimeZero + 7ms);
  for (const auto& event : of_rank_0) {
    EXPECT_EQ(event.failed, 1u);
    EXPECT_FALSE(event.completed());
    const auto record = events->flight_record(event);
    EXPECT_EQ(record.state, "scheduled");
    EXPECT_EQ(record.time_discovered_completed_ns, -1);
    EXPECT_FALSE(record.retired);
  }
  EXPECT_EQ(events->last_completed(0), nullptr);
}

TEST_F(EventLogTest, Ring_KeepsTheLastOfEachRank) {
  log_options.last_of_each_rank = 4;
  run(2, [](int, const ProcessGroup& group) {
    for (int i = 0; i < 10; ++i) allreduce(group, at::ones({1}))->wait();
    group->barrier();
  });
  const auto kept = events->of_rank(1);
  ASSERT_EQ(kept.size(), 4u);
  EXPECT_EQ(kept.front().seq_id, 8u);
  EXPECT_EQ(kept.back().seq_id, 11u);
  EXPECT_EQ(events->size(), 22u);
  const auto of_both = events->kept();
  ASSERT_EQ(of_both.size(), 8u);
  for (std::size_t i = 1; i < 8; ++i) EXPECT_LT(of_both[i - 1].record_id, of_both[i].record_id);
  EXPECT_EQ(events->last(1)->record_id, kept.back().record_id);
  ASSERT_NE(events->last_completed(0), nullptr);
  EXPECT_EQ(events->title(*events->last_completed(0)), "barrier #11 on group \"world\"");
}

TEST_F(EventLogTest, KeepAll_KeepsAllInOrder) {
  log_options.keep_all = true;
  run_example();
  const auto all = events->kept();
  ASSERT_EQ(all.size(), 6u);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(all[i].record_id, i);
  EXPECT_EQ(events->of_rank(1).size(), 3u);
  EXPECT_EQ(events->last_completed(1)->seq_id, 1u);
}

TEST_F(EventLogTest, Hash_IsTheRunsIdentity) {
  const auto hash = run_example();
  clock = {};
  EXPECT_EQ(run_example(), hash);
  clock = {};
  EXPECT_NE(run_example(3), hash);
  clock = {};
  EXPECT_NE(run_example(2, 1ns), hash);
  clock = {};
  log_options.keep_all = true;
  EXPECT_EQ(run_example(), hash);
}

TEST_F(EventLogTest, SignaturesOfListOps_KeepEachRanksSizes) {
  run(2, [](int rank, const ProcessGroup& group) {
    const std::vector<std::int64_t> in = rank == 0 ? std::vector<std::int64_t>{1, 2} : std::vector<std::int64_t>{3, 4};
    const std::vector<std::int64_t> out = rank == 0 ? std::vector<std::int64_t>{1, 3} : std::vector<std::int64_t>{2, 4};
    alltoall(group, at::ones({out[0] + out[1]}), at::ones({in[0] + in[1]}), out, in)->wait();
  });
  EXPECT_THAT(events->signature(events->of_rank(0)[0]).input_sizes, ElementsAre(ElementsAre(3)));
  EXPECT_THAT(events->signature(events->of_rank(1)[0]).input_sizes, ElementsAre(ElementsAre(7)));
  EXPECT_EQ(events->signature(events->of_rank(1)[0]).fingerprint,
            "alltoall_base(float32[7], cpu, send [3, 4], receive [2, 4])");
}

// The output sizes of these calls may differ although the input sizes agree.
TEST_F(EventLogTest, SignaturesOfGathersAndScatters_KeepTheSizesOfEachCall) {
  run(2, [](int, const ProcessGroup& group) {
    auto gathered_flat = at::ones({8}), gathered = at::ones({4, 2}), part = at::ones({4});
    group->_allgather_base(gathered_flat, part)->wait();
    group->_allgather_base(gathered, part)->wait();
    group->_reduce_scatter_base(part, gathered_flat)->wait();
    group->_reduce_scatter_base(part, gathered)->wait();
  });
  const auto calls = events->of_rank(0);
  ASSERT_EQ(calls.size(), 4u);
  EXPECT_THAT(events->signature(calls[0]).output_sizes, ElementsAre(ElementsAre(8)));
  EXPECT_THAT(events->signature(calls[1]).output_sizes, ElementsAre(ElementsAre(4, 2)));
  EXPECT_THAT(events->signature(calls[2]).input_sizes, ElementsAre(ElementsAre(8)));
  EXPECT_THAT(events->signature(calls[3]).input_sizes, ElementsAre(ElementsAre(4, 2)));
}

TEST_F(EventLogTest, CallSites_AreKeptWhenAskedFor) {
  run_example();
  EXPECT_TRUE(events->call_site(events->of_rank(0)[0]).empty());
  clock = {};
  options.call_sites = true;
  run_example();
  const auto of_rank_0 = events->of_rank(0), of_rank_1 = events->of_rank(1);
  EXPECT_FALSE(events->call_site(of_rank_0[0]).empty());
  EXPECT_EQ(of_rank_0[0].call_site, of_rank_1[0].call_site);
  EXPECT_NE(of_rank_0[0].call_site, of_rank_0[1].call_site);
  EXPECT_EQ(events->call_site(of_rank_0[1]), events->call_site(of_rank_1[1]));
}

TEST(SpanLog, KeepsTheLatestAndEndsThoseThatAreKept) {
  SpanLog log(2);
  const auto at = [](int ns) { return VirtualTime(VirtualDuration(ns)); };
  const auto first = log.begin(0, "forward of submod_0", at(1), 0);
  const auto second = log.begin(1, "backward of submod_0", at(2), 3);
  const auto third = log.begin(0, "forward of submod_0", at(3), 4);
  log.end(first, at(9), 9);  // the log no longer keeps the first span, so nothing happens
  log.end(second, at(5), 6);
  ASSERT_EQ(log.kept().size(), 2U);
  EXPECT_EQ(log.kept()[0].id, second);
  EXPECT_EQ(log.kept()[0].rank, 1);
  EXPECT_EQ(log.kept()[0].end, at(5));
  EXPECT_EQ(log.kept()[0].calls_before_begin, 3U);
  EXPECT_EQ(log.kept()[0].calls_before_end, 6U);
  EXPECT_EQ(log.name(log.kept()[0]), "backward of submod_0");
  EXPECT_EQ(log.kept()[1].id, third);
  EXPECT_EQ(log.kept()[1].end, Span::kNever);
  EXPECT_EQ(log.name(log.kept()[1]), "forward of submod_0");
}

TEST(SpanLog, OfALogOfNoEvents_KeepsOneSpanForEachRank) {
  EventLog log({.ranks = 2, .last_of_each_rank = 0});
  for (int i = 0; i < 5; ++i) log.spans().begin(0, "forward", kTimeZero, 0);
  EXPECT_EQ(log.spans().kept().size(), 2u);
}

// Rank 1 shares rank 0's thread, but its fiber has no log.
TEST_F(EventLogTest, Spans_AreRecordedOnlyForFibersWithALog) {
  const auto outcome = run(2, [this](int rank, const ProcessGroup&) {
    if (rank == 0) record_spans_in(*events);
    const SpanScope scope(rank == 0 ? "forward" : "without a log");
    exec::this_rank::yield();
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
  {
    const SpanScope scope("outside of the world");
  }
  const auto& spans = events->spans();
  ASSERT_EQ(spans.kept().size(), 1U);
  EXPECT_EQ(spans.kept()[0].rank, 0);
  EXPECT_EQ(spans.name(spans.kept()[0]), "forward");
  EXPECT_EQ(spans.kept()[0].end, kTimeZero);
}

}  // namespace
}  // namespace rehearse::comm
