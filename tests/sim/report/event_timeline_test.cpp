// SPDX-License-Identifier: BSD-3-Clause
#include "report/page/event_timeline.h"

#include <chrono>
#include <cstddef>
#include <sstream>

#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rehearse/comm/errors.h>
#include <rehearse/sim/fault.h>
#include <rehearse/sim/report_writers.h>
#include <rehearse/sim/world.h>
#include <rehearse_internal/exec/this_rank.h>
#include <rehearse_internal/sim/chrome_trace.h>
#include <rehearse_internal/sim/flight_recorder.h>

#include "sim/report/event_log_maker.h"

// Contract: a page's timeline has every call of the log with its times. A timeline read from the run's trace.json has
// the same calls, groups and spans.

namespace rehearse::sim {
namespace {

using c10d::OpType;
using Call = Timeline::Call;

class EventTimelines : public ::testing::Test {
 protected:
  EventTimelines() {
    made_.add(OpType::ALLREDUCE, 1, 1, 2, 10, 13);
    made_.add(OpType::ALLREDUCE, 0, 1, 10, 10, 13);
    made_.add(OpType::SEND, 0, 1, 14, 15, 16, 1, 7);
    made_.add(OpType::RECV, 1, 1, 15, 15, 16, 0, 7);
    made_.add(OpType::RECV, 1, 2, 20, -1, -1);
    made_.add(OpType::ALLREDUCE, 0, 2, 30, 31, -1);
    made_.add(OpType::BARRIER, 0, 3, 40, -1, 45).failed = 1;
    made_.add(OpType::BARRIER, 1, 3, 41, 42, 46).failed = 1;
    auto& spans = made_.log.spans();
    spans.end(spans.begin(0, "forward of f", EventLogMaker::at(3), 0), EventLogMaker::at(9), 0);
  }

  EventLogMaker made_{2};
};

TEST_F(EventTimelines, Calls_AreThoseOfTheLogByRank) {
  const auto timeline = timeline_of(made_.log, 2);
  EXPECT_THAT(timeline.calls[0], ::testing::ElementsAre(Call{0, 1, 10'000, 10'000, 13'000},
                                                        Call{1, 1, 14'000, 15'000, 16'000}, Call{0, 2, 30'000, 31'000},
                                                        Call{4, 3, 40'000, Timeline::kNever, 45'000, /*failed=*/true}));
  ASSERT_EQ(timeline.calls[1].size(), 4u);
  EXPECT_EQ(timeline.calls[1][2].started, Timeline::kNever);
  EXPECT_EQ(timeline.left_out, 0u);
}

TEST_F(EventTimelines, Kinds_SayWhichRanksACallMatches) {
  const auto timeline = timeline_of(made_.log, 2);
  const auto kind_of = [&](std::size_t rank, std::size_t call) {
    return timeline.kinds[timeline.calls[rank][call].kind];
  };
  EXPECT_EQ(kind_of(0, 0), kind_of(1, 0));
  EXPECT_EQ(kind_of(0, 0).type, Timeline::CallType::collective);
  EXPECT_EQ(kind_of(0, 1).type, Timeline::CallType::send);
  EXPECT_EQ(kind_of(0, 1).peer_offset, 1);
  EXPECT_EQ(kind_of(0, 1).tag, 7);
  EXPECT_EQ(kind_of(1, 1).peer_offset, -1);
  EXPECT_TRUE(kind_of(1, 2).any_peer);
}

TEST_F(EventTimelines, Trace_HasTheSameCalls) {
  Report report;
  report.ranks = 2;
  report.end_time = EventLogMaker::at(50);
  std::ostringstream trace;
  write_chrome_trace(trace, made_.log, report);
  const auto read = timeline_in_trace(parse_json(trace.str()), 2), kept = timeline_of(made_.log, 2);
  ASSERT_EQ(read.calls.size(), kept.calls.size());
  for (std::size_t rank = 0; rank < 2; ++rank) {
    ASSERT_EQ(read.calls[rank].size(), kept.calls[rank].size());
    for (std::size_t i = 0; i < kept.calls[rank].size(); ++i) {
      auto call = read.calls[rank][i];
      EXPECT_EQ(read.signatures[read.kinds[call.kind].signature],
                kept.signatures[kept.kinds[kept.calls[rank][i].kind].signature]);
      EXPECT_EQ(read.kinds[call.kind].type, kept.kinds[kept.calls[rank][i].kind].type);
      call.kind = kept.calls[rank][i].kind;
      EXPECT_EQ(call, kept.calls[rank][i]);
    }
    EXPECT_EQ(read.spans[rank], kept.spans[rank]);
  }
  EXPECT_EQ(read.groups, kept.groups);
  EXPECT_EQ(read.span_names, kept.span_names);
}

// Ranks 0 and 1 wait for rank 2, which crashes a millisecond later.
TEST(TimelinesOfWorlds, CallWhosePeerClosedTheConnection_EndedThen) {
  WorldOptions options{.ranks = 3};
  options.keep_all_events = true;
  options.faults = {parse_fault("crash rank=2 at=allreduce#2 peers=disconnect")};
  World world(options);
  const auto report = world.run([](RankContext& ctx) {
    auto grad = at::ones({2});
    ctx.group().allreduce(grad)->wait();
    if (ctx.rank() == 2) exec::this_rank::sleep_for(std::chrono::milliseconds(1));
    EXPECT_THROW(ctx.group().allreduce(grad)->wait(), CommError);
  });
  ASSERT_EQ(report.verdict, Verdict::ok) << report.headline;
  const auto timeline = timeline_of(world.events(), 3);
  for (const std::size_t rank : {0u, 1u}) {
    ASSERT_EQ(timeline.calls[rank].size(), 2u);
    EXPECT_FALSE(timeline.calls[rank][0].failed);
    const auto& lost = timeline.calls[rank][1];
    EXPECT_TRUE(lost.failed);
    EXPECT_EQ(lost.started, Timeline::kNever);
    EXPECT_EQ(lost.ended, report.faults[0].fired[0].at.time_since_epoch().count());
  }
}

// The text of the report says that the call never completes. So the views must not show that it failed at 1800 s.
TEST(TimelinesOfWorlds, CallOfADeadlock_NeverEndsAlthoughItTimedOut) {
  WorldOptions options{.ranks = 2};
  options.keep_all_events = true;
  World world(options);
  const auto report = world.run([](RankContext& ctx) {
    if (ctx.rank() == 0) ctx.group().barrier()->wait();
  });
  ASSERT_EQ(report.verdict, Verdict::deadlock) << report.headline;
  ASSERT_EQ(report.end_time, kTimeZero + std::chrono::minutes(30));
  EXPECT_EQ(report.stuck_since, kTimeZero);
  EXPECT_EQ(report_from_json(to_json(report)).stuck_since, report.stuck_since);
  std::ostringstream trace;
  write_chrome_trace(trace, world.events(), report);
  for (const auto& timeline :
       {timeline_of(world.events(), 2, report.stuck_since), timeline_in_trace(parse_json(trace.str()), 2)}) {
    ASSERT_EQ(timeline.calls[0].size(), 1u);
    EXPECT_FALSE(timeline.calls[0][0].failed);
    EXPECT_EQ(timeline.calls[0][0].ended, Timeline::kNever);
  }
}

TEST(TraceTimelines, OtherFiles_AreRefusedWithWhatIsWrong) {
  const auto problem_of = [](const std::string& text) -> std::string {
    try {
      timeline_in_trace(parse_json(text), 2);
      return "";
    } catch (const ReportFormatError& error) {
      return error.what();
    }
  };
  EXPECT_EQ(problem_of("{}"), "is no trace of rehearse: traceEvents is missing");
  EXPECT_EQ(problem_of(R"({"traceEvents":[{"ph":"X","pid":2}]})"),
            "is no trace of rehearse: traceEvents[0].pid is 2, and not a number from 0 to 1");
}

TEST(TraceTimelines, FlightRecord_HasPathsOfFilesUnlessTwoHaveOneName) {
  const auto entry = [](const std::string& path) { return R"({"frames":[{"filename":")" + path + "\"}]}"; };
  const auto files = files_in_flight_recorder(
      parse_json("{\"entries\":[[" + entry("/a/x.cpp") + "," + entry("/a/y.cpp") + "],[" + entry("/b/y.cpp") + "]]}"));
  EXPECT_EQ(files, (std::map<std::string, std::string>{{"x.cpp", "/a/x.cpp"}}));
  EXPECT_THROW(files_in_flight_recorder(parse_json("{\"entries\":[{}]}")), ReportFormatError);
}

}  // namespace
}  // namespace rehearse::sim
