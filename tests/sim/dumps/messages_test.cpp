// SPDX-License-Identifier: BSD-3-Clause
// Contract: sends and receives are paired by their order between two ranks. A send or receive without a partner is
// reported, unless a recorder has dropped the partner.
#include <gtest/gtest.h>

#include "dump_maker.h"

namespace rehearse::sim {
namespace {

TEST(DumpedMessages, ThatMatch_AreSilent) {
  DumpMaker job(2);
  for (int i = 0; i < 3; ++i) {
    job.call(0, "send 0->1", {4 + i});
    job.call(1, "recv 1<-0", {4 + i});
  }
  const auto report = job.explained();
  EXPECT_EQ(report.verdict, Verdict::ok);
  EXPECT_EQ(report.operations, 6u);
  EXPECT_TRUE(report.remarks.empty());
}

TEST(DumpedMessages, OfOtherSizes_AreAMismatch) {
  DumpMaker job(2);
  job.call(0, "send 0->1", {4}, false);
  job.call(1, "recv 1<-0", {3}, false);
  EXPECT_EQ(
      job.explained().headline,
      "ranks 0 and 1 disagree on group \"0:default_pg\": rank 0 called send(float32[4], cuda) to rank 1, rank 1 called "
      "recv(float32[3], cuda) from rank 0; they differ in elements (4, 3)");
  const auto lines = job.explained().rank_lines;
  EXPECT_EQ(lines[0].doing, "send #1 to rank 1 on group \"0:default_pg\" (the ranks' calls do not match)");
  EXPECT_EQ(lines[0].waits_for, std::vector<int>{1});
  EXPECT_EQ(lines[1].doing, "recv #1 from rank 0 on group \"0:default_pg\" (the ranks' calls do not match)");
}

// A recorder writes the receiver's own rank for a receive from any source.
TEST(DumpedMessages, OfAnySource_MeetAMessageThatFits) {
  DumpMaker job(3);
  job.call(1, "send 1->0", {3});
  job.call(2, "send 2->0", {2});
  job.call(0, "recv 0<-0", {2});
  job.call(0, "recv 0<-0", {3});
  const auto report = job.explained();
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_TRUE(report.remarks.empty());
}

TEST(DumpedMessages, OfAnySourceAndAnotherSize_AreAMismatch) {
  DumpMaker job(3);
  job.call(2, "send 2->0", {3}, false);
  job.call(0, "recv 0<-0", {2}, false);
  const auto report = job.explained();
  EXPECT_EQ(report.verdict, Verdict::mismatch) << report.headline;
  EXPECT_EQ(report.rank_lines[0].waits_for, std::vector<int>{2});
}

TEST(DumpedMessages, OfAnySourceThatNobodySent_WaitsForAllOthers) {
  DumpMaker job(3);
  for (int rank = 0; rank < 3; ++rank) job.call(rank, "all_reduce", {4});
  job.call(0, "recv 0<-0", {2}, false);
  const auto report = job.explained();
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  EXPECT_EQ(report.rank_lines[0].waits_for, (std::vector<int>{1, 2}));
  EXPECT_EQ(report.rank_lines[0].doing, "recv_any_source #1 on group \"0:default_pg\" (nothing has been sent)");
}

TEST(DumpedMessages, ThatFitAndDoNotEnd_AreATimeout) {
  DumpMaker job(2);
  job.call(0, "send 0->1", {4});
  job.call(1, "recv 1<-0", {4}, false);
  const auto report = job.explained();
  EXPECT_EQ(report.verdict, Verdict::timeout);
  EXPECT_EQ(report.headline,
            "recv #1 from rank 0 on group \"0:default_pg\": all its ranks called it alike, and on rank 1 it has not "
            "ended; the fault probably lies below the calls (network, device, driver)");
}

TEST(DumpedMessages, ReceiveWithoutASend_WaitsForItsSource) {
  DumpMaker job(3);
  for (int rank = 0; rank < 3; ++rank) job.call(rank, "all_reduce", {4});
  job.call(1, "recv 1<-0", {4}, false);
  const auto report = job.explained();
  EXPECT_EQ(
      report.headline,
      "recv #1 from rank 0 on group \"0:default_pg\": rank 0 has not come; rank 0 called last: allreduce #1 on group "
      "\"0:default_pg\"");
  EXPECT_EQ(report.rank_lines[1].doing, "recv #1 from rank 0 on group \"0:default_pg\" (nothing has been sent)");
  EXPECT_EQ(report.dumps->culprits, std::vector<int>{0});
}

TEST(DumpedMessages, RingOfSends_IsACycle) {
  DumpMaker job(3);
  job.call(0, "send 0->1", {4}, false);
  job.call(1, "send 1->2", {4}, false);
  job.call(2, "send 2->0", {4}, false);
  EXPECT_EQ(
      job.explained().headline,
      "ranks 0 -> 1 -> 2 -> 0 wait for each other: rank 0 in send #1 to rank 1 on group \"0:default_pg\", rank 1 in "
      "send #1 to rank 2 on group \"0:default_pg\", rank 2 in send #1 to rank 0 on group \"0:default_pg\"");
}

TEST(DumpedMessages, FromAnotherRankThanExpected_SaysWhatIsThere) {
  DumpMaker job(3);
  job.call(0, "send 0->2", {4}, false);
  job.call(2, "recv 2<-1", {4}, false);
  const auto report = job.explained();
  EXPECT_EQ(report.rank_lines[0].doing,
            "send #1 to rank 2 on group \"0:default_pg\" (no receive for it; rank 2 receives from rank 1)");
  EXPECT_EQ(report.rank_lines[2].doing,
            "recv #1 from rank 1 on group \"0:default_pg\" (nothing has been sent; rank 0 has sent instead)");
  EXPECT_EQ(report.dumps->culprits, std::vector<int>{1});
}

TEST(DumpedMessages, CompleteSendWithoutAReceive_IsRemarked) {
  DumpMaker job(2);
  job.call(0, "send 0->1", {4});
  const auto report = job.explained();
  EXPECT_EQ(report.verdict, Verdict::ok);
  EXPECT_EQ(report.remarks,
            std::vector<std::string>{"send #1 to rank 1 on group \"0:default_pg\" of rank 0 is complete, "
                                     "and nobody received it"});
}

// The sender's recorder has dropped the send, because its buffer was full.
TEST(DumpedMessages, CompleteReceiveWithoutASend_IsNotRemarked) {
  DumpMaker job(2);
  job.call(0, "all_reduce", {4});
  job.call(1, "recv 1<-0", {4});
  job.call(1, "all_reduce", {4});
  EXPECT_EQ(job.explained().remarks, std::vector<std::string>{});
}

// The recorder leaves the messages of a batch in the state `scheduled`. It completes only the entry for the end of the
// batch. That entry has the number of an earlier collective.
void add_batch(DumpMaker& job, int rank, bool completed) {
  const auto peer = std::to_string(1 - rank), self = std::to_string(rank);
  const auto& first = job.call(rank, "send " + self + "->" + peer, {4}, false);
  const auto number = first.at("p2p_seq_id").get<int>();
  job.call(rank, "recv " + self + "<-" + peer, {4}, false)["p2p_seq_id"] = number;
  auto& end = job.call(rank, "coalesced", {}, completed);
  end["collective_seq_id"] = 1;
  end["p2p_seq_id"] = number;
  end["input_sizes"] = end["input_dtypes"] = end["output_sizes"] = end["output_dtypes"] = Json::array();
}

TEST(DumpedMessages, OfABatch_AreOverWhenItsEndIs) {
  DumpMaker job(2);
  for (const int rank : {0, 1}) {
    job.call(rank, "all_reduce", {4});
    add_batch(job, rank, true);
  }
  EXPECT_EQ(job.explained().headline, "all 8 calls in the dumps are complete");
}

TEST(DumpedMessages, OfABatchThatOneRankDidNotMake_WaitForIt) {
  DumpMaker job(2);
  for (const int rank : {0, 1}) job.call(rank, "all_reduce", {4});
  add_batch(job, 0, false);
  const auto report = job.explained();
  EXPECT_EQ(
      report.headline,
      "send #1 to rank 1 on group \"0:default_pg\": rank 1 has not come; rank 1 called last: allreduce #1 on group "
      "\"0:default_pg\"");
}

}  // namespace
}  // namespace rehearse::sim
