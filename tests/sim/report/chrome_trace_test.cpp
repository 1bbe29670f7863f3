// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/sim/chrome_trace.h>

#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "event_log_maker.h"

namespace rehearse::sim {
namespace {

using c10d::OpType;
using Parsed = nlohmann::ordered_json;
using testing::ElementsAre;
using testing::IsEmpty;

Report report_of(int ranks, Verdict verdict = Verdict::ok) {
  Report report;
  report.verdict = verdict;
  report.program = "lm_ddp";
  report.ranks = ranks;
  report.seed = 7;
  report.identity = 0xc0ffee;
  report.end_time = EventLogMaker::at(100);
  return report;
}

std::string trace_text(const comm::EventLog& log, const Report& report) {
  std::ostringstream out;
  write_chrome_trace(out, log, report);
  return out.str();
}

// The trace's events with this phase, each as text.
std::vector<std::string> events(const comm::EventLog& log, const Report& report, const std::string& phase) {
  std::vector<std::string> texts;
  const Parsed trace = Parsed::parse(trace_text(log, report));
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") == phase) texts.push_back(event.dump());
  }
  return texts;
}

TEST(ChromeTrace, EmptyRun_IsATraceThatNamesTheRanks) {
  EventLogMaker made(2);
  EXPECT_EQ(
      trace_text(made.log, report_of(2)),
      R"({"displayTimeUnit":"ns","otherData":{"program":"lm_ddp","seed":"0x7","transport":"simulation","verdict":"OK","identity":"0xc0ffee"},"traceEvents":[
{"ph":"M","pid":0,"name":"process_name","args":{"name":"rank 0"}},
{"ph":"M","pid":0,"name":"process_sort_index","args":{"sort_index":0}},
{"ph":"M","pid":1,"name":"process_name","args":{"name":"rank 1"}},
{"ph":"M","pid":1,"name":"process_sort_index","args":{"sort_index":1}}
]}
)");
}

TEST(ChromeTrace, Collective_SliceForEachRankAndArrowFromTheLastToArrive) {
  EventLogMaker made(2);
  made.add(OpType::ALLREDUCE, 1, 1, 2, 10, 13);
  made.add(OpType::ALLREDUCE, 0, 1, 10, 10, 13);
  EXPECT_THAT(
      events(made.log, report_of(2), "X"),
      ElementsAre(
          R"json({"ph":"X","pid":1,"tid":0,"ts":2.0,"dur":11.0,"name":"allreduce","cat":"collective","args":{"process_group":["world","default_pg"],"collective_seq_id":1,"p2p_seq_id":0,"op_id":1,"record_id":0,"state":"completed","fingerprint":"allreduce(float32[2], cpu)","wait_us":8.0}})json",
          R"json({"ph":"X","pid":0,"tid":0,"ts":10.0,"dur":3.0,"name":"allreduce","cat":"collective","args":{"process_group":["world","default_pg"],"collective_seq_id":1,"p2p_seq_id":0,"op_id":1,"record_id":1,"state":"completed","fingerprint":"allreduce(float32[2], cpu)","wait_us":0.0}})json"));
  EXPECT_THAT(events(made.log, report_of(2), "s"),
              ElementsAre(R"({"ph":"s","id":1,"pid":0,"tid":0,"ts":10.0,"name":"arrived","cat":"order"})"));
  EXPECT_THAT(events(made.log, report_of(2), "f"),
              ElementsAre(R"({"ph":"f","bp":"e","id":1,"pid":1,"tid":0,"ts":10.0,"name":"arrived","cat":"order"})"));
}

// One field of each event, as text.
std::vector<std::string> field(const comm::EventLog& log, const std::string& phase, const std::string& name) {
  std::vector<std::string> values;
  for (const auto& text : events(log, report_of(2), phase)) values.push_back(Parsed::parse(text).at(name).dump());
  return values;
}

TEST(ChromeTrace, NanosecondTimes_KeepTheirDecimals) {
  EventLogMaker made(2);
  auto& event = made.add(OpType::BROADCAST, 0, 1, 0, 0, 0);
  event.time_created = kTimeZero + std::chrono::nanoseconds(1'234'567'891);
  event.time_ended = event.time_created + std::chrono::nanoseconds(5);
  EXPECT_THAT(field(made.log, "X", "ts"), ElementsAre("1234567.891"));
  EXPECT_THAT(field(made.log, "X", "dur"), ElementsAre("0.005"));
}

TEST(ChromeTrace, OperationsThatOverlap_GetTracksOfTheirOwn) {
  EventLogMaker made(2);
  made.add(OpType::ALLREDUCE, 0, 1, 0, 0, 10);
  made.add(OpType::ALLREDUCE, 0, 2, 5, 5, 20);    // while call 1 is in flight
  made.add(OpType::ALLREDUCE, 0, 3, 10, 10, 12);  // when call 1 is over
  made.add(OpType::ALLREDUCE, 0, 4, 11, 11, 13);
  made.add(OpType::ALLREDUCE, 1, 1, 11, 11, 13);  // another rank's tracks
  EXPECT_THAT(field(made.log, "X", "tid"), ElementsAre("0", "1", "0", "2", "0"));
}

TEST(ChromeTrace, NeverCompleted_LastsToTheEndAndHasNoArrowUnlessStarted) {
  EventLogMaker made(2);
  made.add(OpType::ALLREDUCE, 0, 1, 40, -1, -1);
  EXPECT_THAT(field(made.log, "X", "dur"), ElementsAre("60.0"));
  const auto arguments = Parsed::parse(field(made.log, "X", "args").at(0));
  EXPECT_EQ(arguments.at("state"), "scheduled");
  EXPECT_EQ(arguments.at("wait_us"), 60.0);
  EXPECT_THAT(events(made.log, report_of(2), "s"), IsEmpty());
}

TEST(ChromeTrace, FailedCall_EndsWhenItFailedAndIsMarked) {
  EventLogMaker made(2);
  made.add(OpType::ALLREDUCE, 0, 1, 40, -1, 50).failed = 1;
  EXPECT_THAT(field(made.log, "X", "dur"), ElementsAre("10.0"));
  EXPECT_THAT(field(made.log, "X", "name"), ElementsAre("\"allreduce\""));
  const auto arguments = Parsed::parse(field(made.log, "X", "args").at(0));
  EXPECT_EQ(arguments.at("state"), "scheduled");
  EXPECT_EQ(arguments.at("failed"), true);
  EXPECT_EQ(arguments.at("wait_us"), 10.0);
}

TEST(ChromeTrace, SendAndReceive_ArrowInOrderOfTheChannel) {
  EventLogMaker made(2);
  made.add(OpType::SEND, 0, 1, 1, 8, 9, 1, 7);
  made.add(OpType::SEND, 0, 2, 2, 3, 4, 1, 5);  // another tag: its receive came first
  made.add(OpType::RECV, 1, 1, 3, 3, 4, 0, 5);
  made.add(OpType::RECV, 1, 2, 8, 8, 9, 0, 7);
  EXPECT_THAT(field(made.log, "X", "cat"),
              ElementsAre("\"point_to_point\"", "\"point_to_point\"", "\"point_to_point\"", "\"point_to_point\""));
  EXPECT_THAT(field(made.log, "s", "ts"), ElementsAre("2.0", "1.0"));
  EXPECT_THAT(field(made.log, "f", "ts"), ElementsAre("3.0", "8.0"));
}

TEST(ChromeTrace, ReceiveFromAnySource_NoArrowIsGuessed) {
  EventLogMaker made(2);
  made.add(OpType::SEND, 0, 1, 1, 2, 3, 1, 0);
  made.add(OpType::RECVANYSOURCE, 1, 1, 2, 2, 3, -1, 0);
  made.add(OpType::SEND, 0, 2, 4, 5, 6, 1, 0);
  made.add(OpType::RECV, 1, 2, 5, 5, 6, 0, 0);
  EXPECT_THAT(events(made.log, report_of(2), "s"), IsEmpty());
}

TEST(ChromeTrace, FailedRankAndVerdict_AreInstants) {
  EventLogMaker made(2);
  Report report = report_of(2, Verdict::rank_failed);
  report.headline = "rank 1: out of memory";
  report.rank_lines = {{0, RankOutcome::stopped, EventLogMaker::at(50), "", "", "", {}},
                       {1, RankOutcome::failed, EventLogMaker::at(50), "out of memory\nframe #0", "", "", {}}};
  EXPECT_THAT(
      events(made.log, report, "i"),
      ElementsAre(
          R"({"ph":"i","s":"p","pid":1,"tid":0,"ts":50.0,"name":"failed: out of memory","cat":"failure"})",
          R"({"ph":"i","s":"g","pid":0,"tid":0,"ts":100.0,"name":"RANK FAILED: rank 1: out of memory","cat":"failure"})"));
}

TEST(ChromeTrace, OnlyTheLastEventsKept_AreWritten) {
  comm::EventLog log({.ranks = 2, .last_of_each_rank = 2});
  EventLogMaker made(2);  // for its signature
  comm::EventWriter writer(log);
  writer.add_group({"world", "", {0, 1}});
  for (std::uint32_t call = 1; call <= 5; ++call) {
    for (int rank = 0; rank < 2; ++rank) {
      comm::Event event = made.add(OpType::BARRIER, rank, call, call, call, call);
      event.signature = writer.signature_of(1, [&] { return made.log.signature(event); });
      writer.record(event, 1);
    }
  }
  EXPECT_THAT(field(log, "X", "ts"), ElementsAre("4.0", "4.0", "5.0", "5.0"));
}

// A span of a rank's own work is a slice on the rank's track "computation". A span without an end lasts until the end
// of the world.
TEST(ChromeTrace, Span_IsASliceOnATrackOfItsOwn) {
  EventLogMaker made(2);
  const auto at = [](int ms) { return EventLogMaker::at(ms); };
  const auto first = made.log.spans().begin(1, "backward of submod_1", at(2), 0);
  made.log.spans().end(first, at(5), 1);
  made.log.spans().begin(1, "backward of submod_0", at(6), 3);
  const auto slices = events(made.log, report_of(2), "X");
  ASSERT_EQ(slices.size(), 2U);
  const Parsed ended = Parsed::parse(slices[0]), open = Parsed::parse(slices[1]);
  EXPECT_EQ(ended.at("name"), "backward of submod_1");
  EXPECT_EQ(ended.at("pid"), 1);
  EXPECT_EQ(ended.at("cat"), "computation");
  EXPECT_EQ(open.at("args").at("calls_before_begin"), 3);
  const double begin = open.at("ts"), duration = open.at("dur");
  EXPECT_EQ(begin + duration, static_cast<double>((report_of(2).end_time.time_since_epoch()).count()) / 1000.0);
  EXPECT_EQ(open.at("tid"), ended.at("tid"));
}

}  // namespace
}  // namespace rehearse::sim
