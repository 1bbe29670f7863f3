// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/sim/flight_recorder.h>

#include <string>

#include <gtest/gtest.h>

#include "event_log_maker.h"

namespace rehearse::sim {
namespace {

// Contract: the keys, types and order that c10d's flight recorder writes and its analyzer reads.
TEST(FlightRecorder, OneRank_ItsGroupsAndEntriesOnly) {
  EventLogMaker made(2);
  made.log.add_group({"tensor_parallel", "undefined", {1}});
  made.add(c10d::OpType::ALLREDUCE, 1, 1, 2, 10, 13);
  made.add(c10d::OpType::ALLREDUCE, 0, 1, 10, 10, 13);
  EXPECT_EQ(flight_recorder_json(made.log, 0), R"({
 "version": "2.10",
 "rank": 0,
 "pg_config": {
  "world": {
   "name": "world",
   "desc": "default_pg",
   "ranks": "[0, 1]"
  }
 },
 "entries": [
  {
   "frames": [],
   "record_id": 1,
   "pg_id": 0,
   "process_group": [
    "world",
    "default_pg"
   ],
   "collective_seq_id": 1,
   "p2p_seq_id": 0,
   "op_id": 1,
   "profiling_name": "nccl:all_reduce",
   "time_created_ns": 10000,
   "time_discovered_started_ns": 10000,
   "time_discovered_completed_ns": 13000,
   "duration_ms": 0.003,
   "input_sizes": [
    [
     2
    ]
   ],
   "input_dtypes": [
    "Float"
   ],
   "output_sizes": [],
   "output_dtypes": [],
   "state": "completed",
   "retired": true,
   "timeout_ms": 1000,
   "is_p2p": false
  }
 ]
}
)");
}

TEST(FlightRecorder, NotComplete_TimesAreMinusOne) {
  EventLogMaker made(1);
  made.add(c10d::OpType::BARRIER, 0, 1, 5, -1, -1);
  const std::string json = flight_recorder_json(made.log, 0);
  EXPECT_NE(json.find("\"time_discovered_started_ns\": -1,\n   \"time_discovered_completed_ns\": -1,\n"
                      "   \"duration_ms\": -1.0,"),
            std::string::npos)
      << json;
  EXPECT_NE(json.find("\"state\": \"scheduled\",\n   \"retired\": false,"), std::string::npos) << json;
}

}  // namespace
}  // namespace rehearse::sim
