// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/sim/flight_recorder.h>

#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "event_log_maker.h"

namespace rehearse::sim {
namespace {

std::string written(const comm::EventLog& log, int ranks) {
  std::ostringstream out;
  Report report;
  report.program = "lm_ddp";
  report.seed = 7;
  report.ranks = ranks;
  report.identity = 0xC0FFEE;
  write_flight_recorder(out, log, report);
  return out.str();
}

// Contract: keys, types and order are those that c10d's flight recorder writes and its analyzer reads. But the
// recording is of all ranks: `entries` has a list for each rank, and `run` says to which run it belongs.
TEST(FlightRecorder, GroupsOnceAndTheEntriesOfEachRank) {
  EventLogMaker made(3);
  made.writer.add_group({"tensor_parallel", "undefined", {1}});
  made.add(c10d::OpType::ALLREDUCE, 1, 1, 2, 10, 13);
  made.add(c10d::OpType::ALLREDUCE, 0, 1, 10, 10, 13);
  made.add(c10d::OpType::BARRIER, 1, 2, 13, -1, -1);
  const std::string sizes = R"("input_sizes":[[2]],"input_dtypes":["Float"],"output_sizes":[],"output_dtypes":[],)";
  EXPECT_EQ(
      written(made.log, 3),
      R"({"version":"2.10",
"run":{"program":"lm_ddp","seed":"0x7","transport":"simulation","verdict":"OK","identity":"0xc0ffee"},
"groups":[
{"name":"world","desc":"default_pg","ranks":[0,1,2]},
{"name":"tensor_parallel","desc":"undefined","ranks":[1]}
],
"entries":[[
{"frames":[],"record_id":0,"pg_id":0,"process_group":["world","default_pg"],"collective_seq_id":1,"p2p_seq_id":0,)"
      R"("op_id":1,"profiling_name":"nccl:all_reduce","time_created_ns":10000,"time_discovered_started_ns":10000,)"
      R"("time_discovered_completed_ns":13000,"duration_ms":0.003,)" +
          sizes +
          R"("state":"completed","retired":true,"timeout_ms":1000,"is_p2p":false}],
[
{"frames":[],"record_id":0,"pg_id":0,"process_group":["world","default_pg"],"collective_seq_id":1,"p2p_seq_id":0,)"
          R"("op_id":1,"profiling_name":"nccl:all_reduce","time_created_ns":2000,"time_discovered_started_ns":10000,)"
          R"("time_discovered_completed_ns":13000,"duration_ms":0.003,)" +
          sizes +
          R"("state":"completed","retired":true,"timeout_ms":1000,"is_p2p":false},
{"frames":[],"record_id":1,"pg_id":0,"process_group":["world","default_pg"],"collective_seq_id":2,"p2p_seq_id":0,)"
          R"("op_id":2,"profiling_name":"nccl:all_reduce_barrier","time_created_ns":13000,)"
          R"("time_discovered_started_ns":-1,"time_discovered_completed_ns":-1,"duration_ms":-1.0,)" +
          sizes +
          R"("state":"scheduled","retired":false,"timeout_ms":1000,"is_p2p":false}],
[]]}
)");
}

TEST(FlightRecorder, IsJson_ARankThatCalledNothingToo) {
  const auto empty = nlohmann::json::parse(written(EventLogMaker(2).log, 2));
  EXPECT_EQ(empty["entries"], nlohmann::json::parse("[[], []]"));
  EXPECT_EQ(empty["groups"].size(), 1u);
}

// Rank 0 makes its group first. Ranks 1 and 2 make another group. Rank 3 makes that group, too, but is no member of it.
TEST(FlightRecorder, GroupsThatRanksMadeDifferently_SayWhoMadeThem) {
  EventLogMaker made(4);
  const auto id = made.writer.add_group({"group1", "undefined", {0, 3}});
  made.writer.add_group({"group2", "undefined", {0}});
  for (const int rank : {2, 1}) made.writer.note_other_creation({id, rank, {"group1", "undefined", {1, 2}}});
  made.writer.note_other_creation({id, 3, {"group1", "undefined", {1, 2}}});
  const auto groups = nlohmann::ordered_json::parse(written(made.log, 4))["groups"];
  EXPECT_EQ(groups.dump(), R"([{"name":"world","desc":"default_pg","ranks":[0,1,2,3]},)"
                           R"({"name":"group1","desc":"undefined","ranks":[0,3],"made_by":[0]},)"
                           R"({"name":"group2","desc":"undefined","ranks":[0]},)"
                           R"({"name":"group1","desc":"undefined","ranks":[1,2],"made_by":[1,2]}])");
}

}  // namespace
}  // namespace rehearse::sim
