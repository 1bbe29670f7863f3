// SPDX-License-Identifier: BSD-3-Clause
// Contract: describing a call, and deciding whether two calls agree, need no executor, event log, matchers or groups.
// This program links core/comm/call alone (and the texts for lists of ranks), so any further dependency fails to link.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse_internal/comm/coalescing.h>
#include <rehearse_internal/comm/group_identity.h>

#include <rehearse_internal/comm/title.h>
#include "comm/call/argument_checks.h"
#include "comm/call/fill_operation.h"
#include "comm/call/fingerprint.h"
#include "comm/call/payload_names.h"

namespace rehearse::comm {
namespace {

using c10d::OpType;
using testing::ElementsAre;
using testing::HasSubstr;

Operation allreduce_of(const at::Tensor& tensor, const c10d::ReduceOp& op = c10d::ReduceOp::SUM) {
  Operation call;
  call.type = OpType::ALLREDUCE;
  fill_allreduce(tensor, op, call);
  return call;
}

TEST(CallAlone, EqualCalls_HaveEqualHashesAndNoOther) {
  const auto call = allreduce_of(at::zeros({3, 4}));
  EXPECT_EQ(agreement_hash(call, 0), agreement_hash(allreduce_of(at::ones({3, 4})), 0));
  EXPECT_NE(agreement_hash(call, 0), agreement_hash(allreduce_of(at::zeros({4, 3})), 0));
  EXPECT_NE(agreement_hash(call, 0), agreement_hash(allreduce_of(at::zeros({3, 4}), c10d::ReduceOp::MAX), 0));
  EXPECT_NE(agreement_hash(call, 0), agreement_hash(call, text_hash("fc1")));
}

TEST(CallAlone, TwoCalls_TellWhatDiffers) {
  const auto first = allreduce_of(at::zeros({3, 4})), second = allreduce_of(at::zeros({5}), c10d::ReduceOp::MAX);
  EXPECT_EQ(fingerprint_text(first), "allreduce(sum, float32[3, 4], cpu)");
  EXPECT_THAT(differences(first, second),
              ElementsAre(Mismatch::Field{"shape", "[3, 4]", "[5]"}, Mismatch::Field{"reduce_op", "sum", "max"}));
}

TEST(CallAlone, PartOfAWhole_BringsItsTensorsAndNoTimeLimit) {
  auto alone = allreduce_of(at::zeros({2}));
  alone.timeout = std::chrono::milliseconds(7);
  Operation of_two;
  of_two.type = OpType::ALLREDUCE_COALESCED;
  add_part(of_two, allreduce_of(at::zeros({3})));
  add_part(of_two, allreduce_of(at::zeros({4})));
  Operation whole;
  whole.timeout = std::chrono::milliseconds(9);
  add_part(whole, alone);
  add_part(whole, of_two);
  std::vector<std::int64_t> inputs, of_parts;
  for (const auto& input : whole.inputs) inputs.push_back(input.numel());
  for (const auto& part : whole.parts) {
    EXPECT_EQ(part.type, OpType::ALLREDUCE);
    EXPECT_EQ(part.timeout.count(), 0);
    EXPECT_TRUE(part.parts.empty());
    of_parts.push_back(part.inputs[0].numel());
  }
  EXPECT_THAT(inputs, ElementsAre(2, 3, 4));
  EXPECT_THAT(of_parts, ElementsAre(2, 3, 4));
  EXPECT_EQ(whole.outputs.size(), 3u);
  EXPECT_EQ(whole.timeout.count(), 9);
}

TEST(CallAlone, Mismatch_IsOneLine) {
  const GroupIdentity group{0, "dp", {4, 6}};
  Mismatch mismatch;
  mismatch.group = group.name;
  mismatch.sequence = 7;
  mismatch.first = side_of(allreduce_of(at::zeros({2})), 0, group, {});
  mismatch.second = side_of(allreduce_of(at::zeros({3})), 1, group, {});
  mismatch.fields = {{"shape", "[2]", "[3]"}};
  EXPECT_EQ(
      to_string(mismatch),
      "ranks 4 and 6 disagree at #7 of group \"dp\": rank 4 called allreduce(sum, float32[2], cpu), rank 6 called "
      "allreduce(sum, float32[3], cpu); they differ in shape ([2], [3])");
}

TEST(CallAlone, Title_NamesThePeerByItsRankInTheWorld) {
  const GroupIdentity group{0, "pp", {4, 6}};
  Operation call;
  call.type = OpType::SEND;
  call.peer = 1;
  call.tag = 5;
  EXPECT_EQ(title_of(call, 3, group), "send #3 to rank 6 with tag 5 on group \"pp\"");
}

TEST(CallAlone, Arguments_AreChecked) {
  const ArgumentChecks check("_allgather_base", 4);
  Operation call;
  fill_allgather_base(check, at::zeros({8}), at::zeros({2}), call);
  EXPECT_EQ(call.inputs.size(), 1u);
  try {
    fill_allgather_base(check, at::zeros({7}), at::zeros({2}), call);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const c10::Error& error) {
    EXPECT_THAT(error.what_without_backtrace(), HasSubstr("must be equal to world_size times input tensor size"));
  }
}

TEST(CallAlone, PayloadNames_AreNotedInTheCallsThatBringThem) {
  PayloadNames names(2);
  const auto tensor = at::zeros({2});
  names.name(1, tensor, "bucket 0");
  auto own = allreduce_of(tensor), other = allreduce_of(at::zeros({2}));
  EXPECT_EQ(names.note_in(own, 1, 0), 0u);
  names.note_in(other, 1, 0);
  ASSERT_NE(own.payload, nullptr);
  EXPECT_EQ(own.payload->text, "bucket 0");
  EXPECT_EQ(other.payload, nullptr);
  names.note_in(own, 0, 0);
  EXPECT_EQ(own.payload, nullptr);
  names.forget(1, tensor.unsafeGetTensorImpl());
  names.note_in(own, 1, 0);
  EXPECT_EQ(own.payload, nullptr);
}

TEST(OpTable, EveryOperationHasItsNames) {
  EXPECT_EQ(name_of(OpType::_ALLREDUCE_SPARSE), "allreduce_sparse");
  EXPECT_EQ(name_of(OpType::UNKNOWN), "unknown");
  EXPECT_EQ(op_row(OpType::ALLTOALL).recorder_name, "all_to_all");
  EXPECT_EQ(op_row(static_cast<OpType>(99)).type, OpType::UNKNOWN);
  Operation call;
  call.type = OpType::BARRIER;
  EXPECT_EQ(name_of(call), "barrier");
  call.tag = Operation::kMonitoredBarrier;
  EXPECT_EQ(name_of(call), "monitored_barrier");
}

}  // namespace
}  // namespace rehearse::comm
