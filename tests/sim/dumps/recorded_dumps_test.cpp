// SPDX-License-Identifier: BSD-3-Clause
// Contract: dumps that PyTorch 2.11 left, with NCCL on two GPUs and with gloo, lead to the mistakes of their programs.
// Each program first made one call of each kind, coalesced ones among them, which must raise no alarm. The paths in the
// stacks are not the original ones.
#include <string>

#include <gtest/gtest.h>

#include "dumps/explain_dumps.h"

namespace rehearse::sim {
namespace {

Report explained(const std::string& name) { return explain_dumps({std::string(RECORDED_DUMPS) + "/" + name}); }

// Rank 1 left out the second all-reduce of skip().
TEST(RecordedDumps, OfNccl_RankThatSkipped) {
  const auto report = explained("nccl_skip");
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  EXPECT_EQ(report.headline,
            "allreduce #16 on group \"0:default_pg\": rank 1 has not come; rank 1 called last: allreduce #15 on group "
            "\"0:default_pg\" at train.py:20 in skip");
  EXPECT_EQ(report.dumps->culprits, std::vector<int>{1});
  EXPECT_EQ(report.rank_lines[0].where.text, "train.py:21 in skip");
  EXPECT_EQ(report.transport, "nccl 2.28.9");
  EXPECT_EQ(report.operations, 45u);
  EXPECT_TRUE(report.remarks.empty());
  EXPECT_EQ(report.dumps->stacks[0].own,
            (std::vector<std::string>{"skip at /job/train.py:20", "<module> at /job/train.py:22"}));
}

TEST(RecordedDumps, OfNccl_AsJson_TellTheSameWithoutStacks) {
  const auto report = explained("nccl_skip_json");
  EXPECT_EQ(report.headline,
            "allreduce #16 on group \"0:default_pg\": rank 1 has not come; rank 1 called last: allreduce #15 on group "
            "\"0:default_pg\"");
  EXPECT_EQ(report.hint,
            "the dumps hold no stacks, as JSON does not; pickles do, and TORCH_FR_CPP_STACK=1 adds those of C++");
}

// The call had ended on rank 0, because NCCL does not compare sizes.
TEST(RecordedDumps, OfNccl_OtherSizes) {
  const auto report = explained("nccl_shape");
  EXPECT_EQ(
      report.headline,
      "ranks 0 and 1 disagree at #15 of group \"0:default_pg\": rank 0 called allreduce(float32[4], cuda), rank 1 "
      "called allreduce(float32[5], cuda); they differ in shape ([4], [5])");
}

TEST(RecordedDumps, OfNccl_OtherCalls) {
  const auto report = explained("nccl_kind");
  EXPECT_EQ(
      report.headline,
      "ranks 0 and 1 disagree at #15 of group \"0:default_pg\": rank 0 called broadcast(float32[4], cuda), rank 1 "
      "called allreduce(float32[4], cuda); they differ in op (broadcast, allreduce)");
  EXPECT_EQ(report.differences[0].second.where.text, "train.py:24 in <module>");
}

// Rank 0, the root, ended a broadcast before rank 1 came. TORCH_FR_CPP_STACK adds C++ frames around those of Python.
TEST(RecordedDumps, OfNccl_WithStacksOfCpp) {
  const auto report = explained("nccl_cpp_stacks");
  EXPECT_EQ(report.headline,
            "allreduce #3 on group \"0:default_pg\": rank 1 has not come; rank 1 called last: allreduce #1 on group "
            "\"2:b\" at train.py:13 in <module>");
  EXPECT_EQ(report.dumps->stacks[1].own, std::vector<std::string>{"<module> at /job/train.py:21"});
  EXPECT_GT(report.dumps->stacks[1].frames.size(), 10u);
}

TEST(RecordedDumps, OfNccl_ReceiveTooMany) {
  const auto report = explained("nccl_recv");
  EXPECT_EQ(
      report.headline,
      "recv #4 from rank 0 on group \"0:default_pg\": rank 0 has not come; rank 0 called last: send #3 to rank 1 on "
      "group \"0:default_pg\" at train.py:26 in <module>");
  EXPECT_EQ(report.dumps->culprits, std::vector<int>{0});
}

// Two jobs with batches of messages. In the first, rank 1 did not make its batch. In the second, a send and its receive
// have different sizes, which NCCL did not notice on rank 0.
TEST(RecordedDumps, OfNccl_BatchesOfMessages) {
  EXPECT_EQ(
      explained("nccl_batch").headline,
      "send #2 to rank 1 on group \"0:default_pg\": rank 1 has not come; rank 1 called last: allreduce #1 on group "
      "\"2:b\" at train.py:13 in <module>");
  EXPECT_EQ(
      explained("nccl_batch_sizes").headline,
      "ranks 1 and 0 disagree on group \"0:default_pg\": rank 1 called send(float32[6], cuda) to rank 0, rank 0 called "
      "recv(float32[4], cuda) from rank 1; they differ in elements (6, 4)");
}

// Gloo's recorder names no members. It leaves each call in the state `scheduled`, and marks a call that is over as
// retired.
TEST(RecordedDumps, OfGloo_AllWell) {
  const auto report = explained("gloo");
  EXPECT_EQ(report.headline, "all 16 calls in the dumps are complete");
  EXPECT_EQ(report.remarks,
            (std::vector<std::string>{
                "the dumps do not say which ranks belong to group \"0:default_pg\"; Rehearse assumes ranks 0-1",
                "the dumps do not say which ranks belong to group \"1:pair\"; Rehearse assumes ranks 0-1"}));
}

// One dump was made while rank 0 waited, the other after its wait had timed out.
TEST(RecordedDumps, OfGloo_RankThatDidNotCome_AlsoAfterTheTimeout) {
  for (const char* name : {"gloo_skip", "gloo_after_timeout"}) {
    const auto report = explained(name);
    EXPECT_EQ(report.headline,
              "allreduce #2 on group \"0:default_pg\": rank 1 has not come; rank 1 called last: allreduce #1 on group "
              "\"0:default_pg\" at train.py:11 in <module>")
        << name;
    EXPECT_EQ(report.dumps->culprits, std::vector<int>{1}) << name;
    EXPECT_EQ(report.rank_lines[0].last, "allreduce #1 on group \"0:default_pg\"") << name;
  }
}

}  // namespace
}  // namespace rehearse::sim
