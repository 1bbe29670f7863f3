// SPDX-License-Identifier: BSD-3-Clause
// Contract: dumps of all ranks lead to a verdict in the matcher's words: which rank, which call, where.
#include "dumps/explain_dumps.h"

#include <gtest/gtest.h>

#include <rehearse/sim/report_writers.h>

#include "dump_maker.h"

namespace rehearse::sim {
namespace {

TEST(ExplainDumps, AllComplete_IsOk) {
  DumpMaker job(2);
  for (const int rank : {0, 1}) job.call(rank, "all_reduce", {4});
  const auto report = job.explained();
  EXPECT_EQ(report.verdict, Verdict::ok);
  EXPECT_EQ(report.headline, "all 2 calls in the dumps are complete");
  EXPECT_EQ(report.operations, 2u);
  EXPECT_TRUE(report.remarks.empty());
}

TEST(ExplainDumps, OneRankCallsSomethingElse_IsAMismatch) {
  DumpMaker job(4);
  for (int rank = 0; rank < 4; ++rank) {
    job.stand_at(10);
    job.call(rank, "all_reduce", {4});
    job.stand_at(rank == 3 ? 31 : 20);
    job.call(rank, rank == 3 ? "broadcast" : "all_reduce", {8}, false);
  }
  const auto report = job.explained();
  EXPECT_EQ(report.verdict, Verdict::mismatch);
  EXPECT_EQ(
      report.headline,
      "rank 3 called broadcast(float32[8], cuda) while ranks 0-2 called allreduce(float32[8], cuda) as #2 of group "
      "\"0:default_pg\": op broadcast, not allreduce");
  EXPECT_EQ(report.dumps->culprits, std::vector<int>{3});
  ASSERT_EQ(report.differences.size(), 1u);
  EXPECT_EQ(report.differences[0].first.where.text, "train.py:20 in step");
  EXPECT_EQ(report.differences[0].second.where.text, "train.py:31 in step");
  ASSERT_EQ(report.dumps->stacks.size(), 2u);
  EXPECT_EQ(report.dumps->stacks[0].ranks, std::vector<int>{3});
  EXPECT_EQ(report.dumps->stacks[0].call, "broadcast #2 on group \"0:default_pg\"");
  EXPECT_EQ(report.dumps->stacks[0].own, std::vector<std::string>{"step at /job/train.py:31"});
  EXPECT_EQ(report.dumps->stacks[0].frames.size(), 2u);
}

TEST(ExplainDumps, OtherSizes_AreAMismatch_AlsoWhereTheCallIsOver) {
  DumpMaker job(3);
  for (const int rank : {0, 1, 2}) job.call(rank, "all_reduce", {rank == 1 ? 5 : 4});
  const auto report = job.explained();
  EXPECT_EQ(
      report.headline,
      "rank 1 called allreduce(float32[5], cuda) while ranks 0,2 called allreduce(float32[4], cuda) as #1 of group "
      "\"0:default_pg\": shape [5], not [4]");
}

TEST(ExplainDumps, OtherDtype_IsAMismatch) {
  DumpMaker job(3);
  for (const int rank : {0, 1, 2}) job.call(rank, "all_reduce", {4});
  job.dump(2)["entries"].items()[0]["input_dtypes"] = Json::array({"BFloat16"});
  EXPECT_EQ(
      job.explained().headline,
      "rank 2 called allreduce(bfloat16[4], cuda) while ranks 0-1 called allreduce(float32[4], cuda) as #1 of group "
      "\"0:default_pg\": dtype bfloat16, not float32");
}

TEST(ExplainDumps, RankThatDidNotCome_IsTheCulprit) {
  DumpMaker job(4);
  for (int rank = 0; rank < 4; ++rank) {
    job.stand_at(10);
    job.call(rank, "broadcast", {4});
    job.stand_at(20);
    if (rank != 2) job.call(rank, "all_reduce", {4}, false);
  }
  const auto report = job.explained();
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  EXPECT_EQ(report.dumps->culprits, std::vector<int>{2});
  EXPECT_EQ(
      to_text(report),
      R"(DEADLOCK: allreduce #2 on group "0:default_pg": rank 2 has not come; rank 2 called last: broadcast #1 on group
  "0:default_pg" at train.py:10 in step
culprit: rank 2 at train.py:10 in step
ranks 0-1,3: blocked in allreduce #2 on group "0:default_pg" (3 of 4 ranks have called it), at train.py:20 in step;
             wait for rank 2; last completed: broadcast #1 on group "0:default_pg"
rank 2:      in no call: all calls so far are complete, at train.py:10 in step;
             last completed: broadcast #1 on group "0:default_pg"
stack of rank 2 in broadcast #1 on group "0:default_pg":
  step at /job/train.py:10
stack of ranks 0-1,3 in allreduce #2 on group "0:default_pg":
  step at /job/train.py:20
rehearse )" +
          report.version + R"( ranks=4: 7 calls in the dumps of ranks 0-3, format 2.10, carried by nccl
)");
}

TEST(ExplainDumps, FewerCallersThanMissing_AreNamedFirst) {
  DumpMaker job(4);
  for (int rank = 0; rank < 4; ++rank) job.call(rank, "broadcast", {4});
  job.call(0, "all_reduce", {4}, false);
  EXPECT_EQ(
      job.explained().headline,
      "rank 0 waits in allreduce #2 on group \"0:default_pg\" for ranks 1-3, which have not come; ranks 1-3 called "
      "last: broadcast #1 on group \"0:default_pg\"");
}

// Each rank waits in one group for a call that the other rank has not made.
TEST(ExplainDumps, TwoGroupsInTurn_AreACycle) {
  DumpMaker job(2);
  job.add_group("a", {0, 1});
  job.add_group("b", {0, 1});
  job.call(0, "all_reduce", {4}, false, "a");
  job.call(1, "all_reduce", {4}, false, "b");
  const auto report = job.explained();
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  EXPECT_EQ(
      report.headline,
      "ranks 0 -> 1 -> 0 wait for each other: rank 0 in allreduce #1 on group \"a\", rank 1 in allreduce #1 on group "
      "\"b\"");
  EXPECT_EQ(report.wait_cycle, (std::vector<std::string>{"rank 0 waits for rank 1 (allreduce #1 on group \"a\")",
                                                         "rank 1 waits for rank 0 (allreduce #1 on group \"b\")"}));
  EXPECT_EQ(report.dumps->culprits, (std::vector<int>{0, 1}));
}

TEST(ExplainDumps, ChainOfWaits_EndsAtTheCulprit) {
  DumpMaker job(3);
  job.add_group("pair", {1, 2});
  job.call(0, "all_reduce", {4}, false);
  job.call(1, "all_reduce", {2}, false, "pair");
  const auto report = job.explained();
  EXPECT_EQ(report.headline, "allreduce #1 on group \"0:default_pg\": rank 2 has not come; rank 2 called nothing");
  EXPECT_EQ(report.dumps->culprits, std::vector<int>{2});
}

TEST(ExplainDumps, AllCameAndItDoesNotEnd_IsATimeoutThatBlamesNoRank) {
  DumpMaker job(2);
  for (const int rank : {0, 1}) job.call(rank, "all_gather", {4}, rank == 0);
  const auto report = job.explained();
  EXPECT_EQ(report.verdict, Verdict::timeout);
  EXPECT_EQ(
      report.headline,
      "allgather #1 on group \"0:default_pg\": all its ranks called it alike, and on rank 1 it has not ended; the "
      "fault probably lies below the calls (network, device, driver)");
  EXPECT_TRUE(report.dumps->culprits.empty());
}

// A rank may have made calls before that are not over.
TEST(ExplainDumps, RanksOfAMismatch_StandInItsCalls) {
  DumpMaker job(2);
  job.add_group("a", {0, 1});
  for (const int rank : {0, 1}) {
    job.stand_at(10);
    job.call(rank, "all_reduce", {4}, false);
    job.stand_at(20 + rank);
    job.call(rank, rank == 0 ? "all_reduce" : "broadcast", {4}, false, "a");
  }
  const auto report = job.explained();
  EXPECT_EQ(report.verdict, Verdict::mismatch);
  for (const auto& line : report.rank_lines) {
    EXPECT_THAT(line.doing, testing::HasSubstr("#1 on group \"a\""));
    EXPECT_THAT(line.where.text, testing::StartsWith("train.py:2" + std::to_string(line.rank)));
  }
}

// All ranks made both calls, but their devices began with different calls.
TEST(ExplainDumps, CallsOfTwoGroupsInDifferentOrders_AreDistinguished) {
  DumpMaker job(2);
  job.add_group("a", {0, 1});
  job.add_group("b", {0, 1});
  for (const int rank : {0, 1}) {
    job.call(rank, "all_reduce", {4}, false, rank == 0 ? "a" : "b");
    job.call(rank, "all_reduce", {4}, false, rank == 0 ? "b" : "a");
  }
  const auto report = job.explained();
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  EXPECT_EQ(report.headline,
            "rank 0 called allreduce #1 on group \"a\" before allreduce #1 on group \"b\", and rank 1 after it: all "
            "ranks called both with the same arguments, and neither has ended; make calls on several groups in the "
            "same order on all ranks");
}

// The ranks must expect as many elements in all as they send in all. Formats before 2.4 do not record the sizes of
// all-to-alls, so the reader does not compare them.
TEST(ExplainDumps, AllToAllThatCannotFit_IsAMismatch) {
  for (const char* version : {"2.10", "2.3"}) {
    DumpMaker job(2, version);
    for (const int rank : {0, 1})
      job.call(rank, "all_to_all", {4}, false)["output_sizes"] = Json::array({Json::array({4 + rank})});
    const auto report = job.explained();
    if (std::string(version) == "2.3") {
      EXPECT_EQ(report.verdict, Verdict::timeout);
      continue;
    }
    EXPECT_EQ(report.verdict, Verdict::mismatch);
    EXPECT_EQ(report.headline,
              "alltoall_base #1 on group \"0:default_pg\": its ranks send 8 elements in all and expect 9, so splits of "
              "theirs do not fit");
    EXPECT_TRUE(report.dumps->culprits.empty());
  }
}

// Ranks may send different numbers of elements. If a rank passed one tensor, its dump does not show how many elements
// went to which rank.
TEST(ExplainDumps, AllToAlls_MayDifferInSizes_AndNotInDtype) {
  DumpMaker job(2);
  for (const int rank : {0, 1}) job.call(rank, "all_to_all", {4 + rank});
  EXPECT_EQ(job.explained().verdict, Verdict::ok);
  job.dump(1)["entries"].items()[0]["input_dtypes"] = Json::array({"Int"});
  EXPECT_EQ(
      job.explained().headline,
      "ranks 0 and 1 disagree at #1 of group \"0:default_pg\": rank 0 called alltoall_base(float32[4], cuda), rank 1 "
      "called alltoall_base(int32[5], cuda); they differ in dtype (float32, int32)");
}

// Lists of tensors show the sizes from each rank to each other rank.
TEST(ExplainDumps, AllToAllOfLists_IsComparedEdgeByEdge) {
  DumpMaker job(2);
  for (const int rank : {0, 1}) {
    auto& entry = job.call(rank, "all_to_all", {2});
    for (const char* list : {"input", "output"}) {
      entry[std::string(list) + "_sizes"] = Json::array({Json::array({2}), Json::array({2})});
      entry[std::string(list) + "_dtypes"] = Json::array({"Float", "Float"});
    }
  }
  EXPECT_EQ(job.explained().verdict, Verdict::ok);
  job.dump(1)["entries"].items()[0]["output_sizes"] = Json::array({Json::array({3}), Json::array({2})});
  EXPECT_EQ(
      job.explained().headline,
      "ranks 0 and 1 disagree at #1 of group \"0:default_pg\": rank 0 sends 2 elements to rank 1, which expects 3; "
      "rank 0 called alltoall(float32, cuda, send [2, 2], receive [2, 2]), rank 1 called alltoall(float32, cuda, send "
      "[2, 2], receive [3, 2])");
}

TEST(ExplainDumps, CoalescedCalls_AreComparedAsOne) {
  DumpMaker job(2);
  for (const int rank : {0, 1}) {
    auto& first = job.call(rank, "_broadcast_oop", {4});
    const auto number = first.at("collective_seq_id").get<int>();
    job.call(rank, "_broadcast_oop", {2 + rank})["collective_seq_id"] = number;
    job.call(rank, "coalesced", {}, false)["collective_seq_id"] = number;
  }
  EXPECT_EQ(
      job.explained().headline,
      "ranks 0 and 1 disagree at #1 of group \"0:default_pg\": rank 0 called coalesced(broadcast(float32[4], cuda), "
      "broadcast(float32[2], cuda)), rank 1 called coalesced(broadcast(float32[4], cuda), broadcast(float32[3], "
      "cuda)); they differ in shape of operation 2 ([2], [3])");
}

TEST(ExplainDumps, CallThatC10dHasNot_IsKnownByItsName) {
  DumpMaker job(3);
  for (const int rank : {0, 1, 2}) job.call(rank, rank == 1 ? "fused" : "mixed", {4 + rank}, false);
  EXPECT_EQ(job.explained().headline,
            "rank 1 called unknown() label=\"nccl:fused\" while ranks 0,2 called unknown() label=\"nccl:mixed\" as #1 "
            "of group \"0:default_pg\": label differs");
}

TEST(ExplainDumps, FramesOfLibraries_AreLeftOut) {
  DumpMaker job(1);
  auto& entry = job.call(0, "all_reduce", {4}, false);
  entry["profiling_name"] = "xccl:all_reduce";
  Json frames = Json::array();
  for (const char* file : {"??", "/pytorch/torch/csrc/distributed/c10d/Ops.cpp", "/usr/src/Python/ceval.c",
                           "/venv/lib/python3.12/site-packages/torch/distributed/c10d_logger.py",
                           "/venv/lib/python3.12/site-packages/mylib/sync.py", "/job/model.cpp", "/job/train.py",
                           "/usr/lib/python3.12/threading.py", "<frozen runpy>"})
    frames.push_back({{"name", "f"}, {"filename", file}, {"line", 3}});
  entry["frames"] = frames;
  const auto report = job.explained();
  EXPECT_EQ(report.dumps->stacks[0].own,
            (std::vector<std::string>{"f at /venv/lib/python3.12/site-packages/mylib/sync.py:3",
                                      "f at /job/model.cpp:3", "f at /job/train.py:3"}));
  EXPECT_EQ(report.rank_lines[0].where.text, "sync.py:3 in f");
  EXPECT_EQ(report.transport, "xccl");
}

TEST(ExplainDumps, LongNamesOfFrames_AreCutInTheText) {
  DumpMaker job(1);
  job.stand_at(5);
  auto& entry = job.call(0, "all_reduce", {4}, false);
  entry["frames"].items()[1]["name"] = std::string(80, 'a') + std::string(300, 'b') + std::string(30, 'c');
  const auto report = job.explained();
  const auto text = to_text(report);
  EXPECT_NE(text.find("\n  " + std::string(80, 'a') + std::string(20, 'b') + " ...\n    b"), text.npos) << text;
  EXPECT_NE(text.find(std::string(30, 'c') + " at /job/train.py:5\n"), text.npos) << text;
  EXPECT_EQ(report.dumps->stacks[0].own[0].size(), 410u + std::string(" at /job/train.py:5").size());
}

TEST(ExplainDumps, Json_IsReadBackWithTheDumpsTexts) {
  DumpMaker job(2);
  job.stand_at(7);
  job.call(0, "all_reduce", {4}, false);
  const auto json = to_json(job.explained({0}));
  const auto report = report_from_json(json);
  EXPECT_EQ(to_json(report), json);
  EXPECT_EQ(report.dumps->without_dump, std::vector<int>{1});
}

}  // namespace
}  // namespace rehearse::sim
