// SPDX-License-Identifier: BSD-3-Clause
// Contract: a call that was sent to another process compares like the original and has the same description.
#include "process/check/messages.h"

#include <string>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <rehearse_internal/archive/archive.h>

#include "comm/call/fingerprint.h"

namespace rehearse::real {
namespace {

const std::string kLabel = "all that there is";
const comm::PayloadName kPayload{"bucket 0", comm::text_hash("bucket 0")};

// A call of the given type, with a value in every field.
comm::Operation full(c10d::OpType type) {
  comm::Operation call;
  call.type = type;
  call.reduce_op = c10d::ReduceOp::PREMUL_SUM;
  call.reduce_supplement = c10::make_intrusive<c10d::NCCLPreMulSumSupplement>(0.5);
  int next = 3;
  for (const comm::AgreedNumber& number : comm::kAgreedNumbers) call.*number.value = next++;
  call.peer = 1;
  call.tag = 1;
  call.inputs = {at::ones({2, 3}), at::ones({4, 0}, at::kDouble)};
  call.outputs = {at::ones({3, 2}).t(), at::ones({5}, at::kLong), at::ones({2, 2}).to_sparse()};
  call.input_splits = {1, 2};
  call.output_splits = {3, 4, 5};
  call.timeout = std::chrono::milliseconds(1500);
  call.label = &kLabel;
  call.payload = &kPayload;
  return call;
}

struct Compared {
  std::uint64_t agreement = 0, signature = 0;
  std::string text;
  bool operator==(const Compared&) const = default;
};

Compared compared(const comm::Operation& call) {
  const auto agreement = comm::agreement_hash(call, 7);
  return {agreement, comm::signature_hash(call, agreement), comm::fingerprint_text(call)};
}

Compared compared_there(const comm::Operation& call) {
  CallTexts texts;
  return compared(operation_of(archive::unpacked<CallFacts>(archive::packed(facts_of(call)), "it"), texts));
}

TEST(CallFacts, OfEveryOperation_AreComparedAlike) {
  for (const comm::OpRow& row : comm::op_table::kRows) {
    comm::Operation call = full(row.type);
    if (row.kind == comm::OpKind::parts) call.parts = {full(c10d::OpType::ALLREDUCE), full(c10d::OpType::BROADCAST)};
    EXPECT_EQ(compared_there(call), compared(call)) << row.name;
  }
}

TEST(CallFacts, EveryNumberThatRanksAgreeOn_SetsCallsApart) {
  for (const comm::AgreedNumber& number : comm::kAgreedNumbers) {
    comm::Operation other = full(c10d::OpType::BROADCAST);
    other.*number.value += 10;
    const Compared here = compared(full(c10d::OpType::BROADCAST)), there = compared_there(other);
    EXPECT_NE(there.agreement, here.agreement) << number.name;
    EXPECT_NE(there.text, here.text) << number.name;
    const auto differences = comm::differences(full(c10d::OpType::BROADCAST), other);
    ASSERT_EQ(differences.size(), 1u) << number.name;
    EXPECT_EQ(differences[0].name, number.name);
  }
}

}  // namespace
}  // namespace rehearse::real
