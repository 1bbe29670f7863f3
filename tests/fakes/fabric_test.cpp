// SPDX-License-Identifier: BSD-3-Clause
// Contract: when transfers complete, what cancel() does, and the texts with which prepare() refuses calls.
#include <gmock/gmock.h>

#include "bit_equal.h"
#include "group_fixture.h"

namespace rehearse::fakes::testing {
namespace {

using c10d::OpType;
using namespace std::chrono_literals;
using rehearse::test::BitEqual;
using Op = c10d::ReduceOp::RedOpType;
using ::testing::HasSubstr;

struct FixedCost final : CostModel {
  VirtualDuration duration(const comm::Transfer& transfer) const override {
    return 1us * static_cast<int>(transfer.sequence);
  }
};

Calls allreduce_of_ones(std::uint64_t sequence) {
  Calls calls(OpType::ALLREDUCE, 2);
  for (int r = 0; r < 2; ++r) {
    calls[r].reduce_op = Op::SUM;
    calls[r].inputs = calls[r].outputs = {at::ones({3})};
  }
  calls.transfer.sequence = sequence;
  return calls;
}

class Timing : public ::testing::Test {
 protected:
  void advance(VirtualDuration by) {
    clock.advance_to(clock.now() + by);
    timers.fire_due(clock.now());
  }

  exec::TimerQueue timers;
  TestClock clock;
  FixedCost costs;
  FakeFabric fabric{timers, clock, costs};
};

TEST_F(Timing, DataMovesWhenTheTransferIsDone) {
  Calls calls = allreduce_of_ones(5);
  CountingCompletion done;
  advance(3us);
  fabric.launch(calls.transfer, done);
  advance(4us);
  EXPECT_EQ(done.count, 0);
  EXPECT_THAT(calls[0].outputs[0], BitEqual(at::ones({3})));
  // Inputs may change until the transfer completes, and the changes count.
  calls[1].inputs[0].fill_(10);
  advance(1us);
  EXPECT_EQ(done.count, 1);
  EXPECT_THAT(calls[0].outputs[0], BitEqual(at::full({3}, 11.0)));
  EXPECT_EQ(fabric.pending(), 0u);
}

TEST_F(Timing, CompletionMayLaunchTheNext) {
  Calls first = allreduce_of_ones(1), second = allreduce_of_ones(1), third = allreduce_of_ones(0);
  CountingCompletion first_done, second_done, third_done;
  first_done.then = [&] { fabric.launch(second.transfer, second_done); };
  second_done.then = [&] { fabric.launch(third.transfer, third_done); };
  fabric.launch(first.transfer, first_done);
  advance(1us);
  EXPECT_EQ(first_done.count, 1);
  EXPECT_EQ(second_done.count, 0);
  advance(1us);
  EXPECT_EQ(second_done.count, 1);
  EXPECT_EQ(third_done.count, 1);
}

TEST_F(Timing, Cancelled_IsNotReported) {
  std::vector<Calls> all;
  for (int i = 0; i < 4; ++i) all.push_back(allreduce_of_ones(3));
  std::vector<CountingCompletion> done(4);
  for (int i = 0; i < 4; ++i) {
    fabric.launch(all[i].transfer, done[i]);
  }
  fabric.cancel(done[0]);
  fabric.cancel(done[2]);
  fabric.cancel(done[2]);  // already cancelled, so this has no effect
  EXPECT_EQ(fabric.pending(), 2u);
  advance(3us);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(done[i].count, i % 2) << i;
  EXPECT_FALSE(timers.next_due());
}

TEST_F(Timing, Destroyed_DropsWhatIsPending) {
  Calls calls = allreduce_of_ones(3);
  CountingCompletion done;
  {
    FakeFabric brief(timers, clock, costs);
    brief.launch(calls.transfer, done);
    EXPECT_TRUE(timers.next_due());
  }
  EXPECT_FALSE(timers.next_due());
  EXPECT_EQ(done.count, 0);
}

class Validation : public FabricTest {
 protected:
  std::string refusal(comm::Operation call) {
    const comm::GroupIdentity group{0, "test", {0, 1}};
    try {
      fabric.prepare(call, group, 0);
    } catch (const c10::Error& error) {
      return error.what_without_backtrace();
    }
    return "accepted";
  }

  static comm::Operation allreduce(const at::Tensor& tensor, Op op) {
    comm::Operation call;
    call.type = OpType::ALLREDUCE;
    call.reduce_op = op;
    call.inputs = call.outputs = {tensor};
    return call;
  }
};

TEST_F(Validation, DtypesAndOps) {
  EXPECT_EQ(refusal(allreduce(at::ones({2}, at::kShort), Op::SUM)), "Invalid scalar type");
  EXPECT_EQ(refusal(allreduce(at::ones({2}), Op::BAND)), "Cannot use ReduceOp.BAND with non-integral dtype");
  EXPECT_EQ(refusal(allreduce(at::ones({2}, at::kBool), Op::AVG)), "Cannot use ReduceOp.AVG with boolean inputs");
  EXPECT_THAT(refusal(allreduce(at::ones({2}, at::kComplexFloat), Op::PRODUCT)),
              HasSubstr("does not support PRODUCT on complex tensors"));
  EXPECT_EQ(refusal(allreduce(at::ones({2}), Op::UNUSED)), "Unhandled ReduceOp");
  EXPECT_THAT(refusal(allreduce(at::ones({2}), Op::PREMUL_SUM)), HasSubstr("needs its factor"));
  auto premul = allreduce(at::ones({2}, at::kInt), Op::PREMUL_SUM);
  premul.reduce_supplement = c10::make_intrusive<c10d::NCCLPreMulSumSupplement>(2.0);
  EXPECT_EQ(refusal(premul), "PreMulSum Data type must be half, float, bfloat16 or double");
  premul.inputs = premul.outputs = {at::ones({2}).to(at::kFloat8_e5m2)};
  EXPECT_EQ(refusal(premul), "PreMulSum Data type must be half, float, bfloat16 or double");
  for (const auto dtype : {at::kFloat, at::kBFloat16, at::kFloat8_e5m2, at::kLong, at::kComplexDouble}) {
    EXPECT_EQ(refusal(allreduce(at::ones({2}).to(dtype), Op::AVG)), "accepted");
  }
}

TEST_F(Validation, Tensors) {
  EXPECT_THAT(refusal(allreduce(at::Tensor(), Op::SUM)), HasSubstr("undefined"));
  EXPECT_THAT(refusal(allreduce(at::ones({2}).to_sparse(), Op::SUM)),
              HasSubstr("unsupported layout; it does not support Sparse tensors"));
  EXPECT_THAT(refusal(allreduce(at::empty({2}, at::kMeta), Op::SUM)),
              HasSubstr("unsupported device type meta; it does not support "));
  EXPECT_THAT(refusal(allreduce(at::ones({1}).expand({3}), Op::SUM)),
              HasSubstr("more than one element of the written-to tensor refers to a single memory location"));
  EXPECT_THAT(refusal(allreduce(at::ones({2}, at::kComplexFloat).conj(), Op::SUM)), HasSubstr("resolve_conj()"));
  comm::Operation coalesced;
  coalesced.type = OpType::COALESCED;
  EXPECT_THAT(refusal(coalesced), HasSubstr("unsupported operation: the fabric does not support "));
}

}  // namespace
}  // namespace rehearse::fakes::testing
