// SPDX-License-Identifier: BSD-3-Clause
// Contract: the report claims nothing about ranks without a dump, nor about calls that a recorder has dropped.
#include <gtest/gtest.h>

#include "dump_maker.h"
#include "report/writers/culprits.h"

namespace rehearse::sim {
namespace {

TEST(PartialDumps, RankWithoutDump_MayHaveCome) {
  DumpMaker job(3);
  for (const int rank : {0, 1}) job.call(rank, "all_reduce", {4}, false);
  const auto report = job.explained({0, 1});
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  EXPECT_EQ(report.headline,
            "allreduce #1 on group \"0:default_pg\": rank 2 left no dump, so it is not known whether it came");
  EXPECT_TRUE(report.dumps->culprits.empty());
  EXPECT_TRUE(culprits_of(report).empty());
  EXPECT_EQ(report.dumps->without_dump, std::vector<int>{2});
  EXPECT_EQ(report.rank_lines[2].doing, "left no dump");
  EXPECT_EQ(report.remarks, std::vector<std::string>{"rank 2 left no dump: what it called is not known"});
}

TEST(PartialDumps, AllComplete_IsSoAsFarAsIsKnown) {
  DumpMaker job(3);
  for (const int rank : {0, 1}) job.call(rank, "all_reduce", {4});
  EXPECT_EQ(job.explained({0, 1}).headline,
            "as far as is known, all 2 calls in the dumps are complete; rank 2 left no dump, so look there first");
}

TEST(PartialDumps, RankWhoseRecorderDroppedAllCalls_IsNotReportedAsIdle) {
  DumpMaker job(2);
  job.call(0, "all_reduce", {4}, false);
  job.dump(1)["pg_status"] = Json{{"0", {{"last_enqueued_collective", 3}}}};
  const auto report = job.explained();
  EXPECT_EQ(report.rank_lines[1].doing, "the recorder had dropped the calls");
  EXPECT_EQ(report.headline,
            "allreduce #1 on group \"0:default_pg\": rank 1 had dropped its calls of that group, so it is not known "
            "whether it came");
}

TEST(PartialDumps, RanksThatAreNotKnownForDifferentReasons_HaveOneEach) {
  DumpMaker job(4);
  job.call(0, "all_reduce", {4}, false);
  job.dump(2)["pg_status"] = Json{{"0", {{"last_enqueued_collective", 3}}}};
  EXPECT_EQ(job.explained({0, 2}).headline,
            "allreduce #1 on group \"0:default_pg\": rank 2 had dropped its calls of that group and ranks 1,3 left no "
            "dump, so it is not known whether they came");
}

TEST(PartialDumps, RankThatIsKnownNotToHaveCome_IsNamedAlone) {
  DumpMaker job(4);
  job.call(0, "all_reduce", {4}, false);
  const auto report = job.explained({0, 1});
  EXPECT_EQ(report.headline, "allreduce #1 on group \"0:default_pg\": rank 1 has not come; rank 1 called nothing");
  EXPECT_EQ(report.dumps->culprits, std::vector<int>{1});
}

// Keeps only the last `count` entries of the rank, as a full recorder does.
void drop_but(DumpMaker& job, int rank, std::size_t count) {
  auto& entries = job.dump(rank)["entries"].items();
  entries.erase(entries.begin(), entries.end() - static_cast<std::ptrdiff_t>(count));
}

TEST(PartialDumps, CallsThatARecorderDropped_CountAsMade) {
  DumpMaker job(3);
  for (int i = 1; i <= 5; ++i) {
    for (int rank = 0; rank < 3; ++rank) job.call(rank, "all_reduce", {i}, i < 5);
  }
  job.dump(2)["entries"].items().pop_back();
  drop_but(job, 0, 2);
  drop_but(job, 1, 3);
  const auto report = job.explained();
  EXPECT_EQ(report.headline,
            "allreduce #5 on group \"0:default_pg\": rank 2 has not come; rank 2 called last: allreduce #4 on group "
            "\"0:default_pg\"");
  EXPECT_EQ(report.remarks,
            std::vector<std::string>{"the recorder of ranks 0-1 had already dropped its earliest calls, so they are "
                                     "not compared; set TORCH_FR_BUFFER_SIZE higher to keep more"});
}

// Rank 1's recorder is full of calls of another group, and has none of group "a" left.
TEST(PartialDumps, GroupWithoutEntriesOnARank_IsNotKnown) {
  DumpMaker job(2);
  job.add_group("a", {0, 1});
  for (const int rank : {0, 1}) job.call(rank, "all_reduce", {4}, rank == 1, "a");
  for (const int rank : {0, 1}) job.call(rank, "all_reduce", {8});
  drop_but(job, 1, 1);
  const auto report = job.explained();
  EXPECT_EQ(report.rank_lines[0].doing, "allreduce #1 on group \"a\" (1 of 2 ranks has called it)");
  EXPECT_EQ(
      report.headline,
      "allreduce #1 on group \"a\": rank 1 had dropped its calls of that group, so it is not known whether it came");
}

// A dump of active calls alone lacks the completed calls.
TEST(PartialDumps, DumpOfActiveCalls_SaysByItsStatusWhatWasMade) {
  DumpMaker job(2);
  for (int i = 1; i <= 3; ++i) {
    for (const int rank : {0, 1}) job.call(rank, "broadcast", {4}, rank == 0 || i < 2);
  }
  for (const int rank : {0, 1}) {
    auto& entries = job.dump(rank)["entries"].items();
    std::erase_if(entries, [](const Json& entry) { return entry.at("state").get<std::string>() == "completed"; });
    job.dump(rank)["pg_status"] = Json{{"0", {{"last_enqueued_collective", 3}}}};
  }
  const auto report = job.explained();
  EXPECT_TRUE(report.dumps->culprits.empty());
  EXPECT_EQ(
      report.headline,
      "broadcast #2 on group \"0:default_pg\": rank 0 had dropped its calls of that group, so it is not known whether "
      "it came");
}

// According to its status, rank 0 has made one call more than its dump shows. If ranks also send messages, the number
// in the status does not prove this, because it may be the number of a message.
TEST(PartialDumps, StatusOfARank_CountsWhereOnlyCollectivesHaveNumbers) {
  for (const bool messages : {false, true}) {
    DumpMaker job(2);
    for (const int rank : {0, 1}) {
      job.call(rank, "all_reduce", {4});
      job.call(rank, "all_gather", {4}, rank == 1)["p2p_seq_id"] = messages ? 1 : 0;
      if (rank == 1) job.call(rank, "broadcast", {4}, false);
      auto& entries = job.dump(rank)["entries"].items();
      std::erase_if(entries, [](const Json& entry) { return entry.at("state").get<std::string>() == "completed"; });
      job.dump(rank)["pg_status"] = Json{{"0", {{"last_enqueued_collective", 3}}}};
    }
    const auto report = job.explained();
    EXPECT_EQ(report.headline.find("has not come"), report.headline.npos) << report.headline;
    EXPECT_EQ(report.rank_lines[1].waits_for, messages ? std::vector<int>{0} : std::vector<int>());
  }
}

TEST(PartialDumps, PartOfACoalescedCall_IsNotCompared) {
  DumpMaker job(2);
  for (const int rank : {0, 1}) {
    job.call(rank, "_broadcast_oop", {4});
    job.call(rank, "_broadcast_oop", {2})["collective_seq_id"] = 1;
    job.call(rank, "coalesced", {})["collective_seq_id"] = 1;
  }
  drop_but(job, 1, 2);
  EXPECT_EQ(job.explained().verdict, Verdict::ok);
}

}  // namespace
}  // namespace rehearse::sim
