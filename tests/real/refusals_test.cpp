// SPDX-License-Identifier: BSD-3-Clause
// Contract: if NCCL cannot carry a call, the call throws on its rank before any rank waits, whatever the other ranks
// call. If possible, the error has the text of PyTorch's back end.
#include <gtest/gtest.h>

#include <ATen/ATen.h>

#include "kit/pre_mul_sum.h"
#include "real_world.h"

namespace rehearse::real {
namespace {

using comm::ProcessGroup;
using Op = c10d::ReduceOp::RedOpType;
using testing::HasSubstr;

class Refusals : public RealWorld {
 protected:
  // Makes the call on rank 0 of 2. The group must still work afterwards.
  void expect_refused(const std::function<void(const ProcessGroup& group)>& call, const char* text) {
    const auto outcome = run(2, [&](int rank, const ProcessGroup& group) {
      if (rank == 0) {
        try {
          call(group);
          ADD_FAILURE() << "nothing was thrown; expected: " << text;
        } catch (const c10::Error& error) {
          EXPECT_THAT(error.what_without_backtrace(), HasSubstr(text));
        }
      }
      EXPECT_TRUE(group->barrier()->wait());
    });
    EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
  }

  static void reduce(const ProcessGroup& group, const at::Tensor& host, Op op) {
    comm::allreduce(group, on_device(host, 0), op);
  }
};

TEST_F(Refusals, TypesThatNcclDoesNotHave) {
  const char* const text = "Input tensor data type is not supported for NCCL process group: Short";
  expect_refused([](const auto& group) { reduce(group, at::ones({2}, at::kShort), Op::SUM); }, text);
  expect_refused([](const auto& group) { comm::broadcast(group, on_device(at::ones({2}, at::kShort), 0)); }, text);
}

TEST_F(Refusals, ReductionsThatNcclDoesNotHave) {
  expect_refused([](const auto& group) { reduce(group, at::ones({2}, at::kInt), Op::BAND); },
                 "Cannot use ReduceOp.BAND with NCCL");
  expect_refused([](const auto& group) { reduce(group, at::ones({2}, at::kInt), Op::BOR); },
                 "Cannot use ReduceOp.BOR with NCCL");
  expect_refused([](const auto& group) { reduce(group, at::ones({2}, at::kInt), Op::BXOR); },
                 "Cannot use ReduceOp.BXOR with NCCL");
  expect_refused([](const auto& group) { reduce(group, at::ones({2}, at::kBool), Op::AVG); },
                 "Cannot use ReduceOp.AVG with boolean inputs");
  expect_refused([](const auto& group) { reduce(group, at::ones({2}, at::kComplexFloat), Op::MAX); },
                 "allreduce does not support max on complex tensors");
}

TEST_F(Refusals, MemoryThatNcclCannotRead) {
  expect_refused([](const auto& group) { comm::allreduce(group, on_device(at::ones({2, 4}).t(), 0)); },
                 "Tensors must be contiguous");
}

TEST_F(Refusals, TensorsOnAnotherRanksDevice) {
  expect_refused([](const auto& group) { comm::allreduce(group, on_device(at::ones({2}), 1)); },
                 "allreduce: a tensor of rank 0 lies on cuda:1; that rank's device is cuda:0");
}

TEST_F(Refusals, FactorsThatNcclDoesNotTake) {
  const auto scaled = [](const at::Tensor& tensor, const at::Tensor& factor) {
    return [=](const ProcessGroup& group) {
      std::vector<at::Tensor> tensors{on_device(tensor, 0)};
      c10d::AllreduceOptions options;
      options.reduceOp = rehearse::test::pre_mul_sum(factor);
      group->allreduce(tensors, options);
    };
  };
  expect_refused(scaled(at::ones({2}, at::kInt), at::ones({1})),
                 "PreMulSum Data type must be half, float, bfloat16 or double");
  expect_refused(
      scaled(at::ones({2}), on_device(at::ones({1}, at::kDouble), 0)),
      "ReduceOp.PREMUL_SUM's factor is of Double on cuda:0; it must be as the tensor is, of Float on cuda:0");
}

// NCCL needs equal sizes.
TEST_F(Refusals, MessageShorterThanItsReceive) {
  const auto outcome = run(2, [](int rank, const ProcessGroup& group) {
    if (rank == 0) comm::send(group, on_device(at::ones({4}), 0), 1)->wait();
    if (rank == 1) comm::recv(group, on_device(at::ones({6}), 1), 0)->wait();
  });
  EXPECT_EQ(outcome.ending, exec::Ending::stopped);
  EXPECT_THAT(outcome.stop_reason, HasSubstr("they differ in elements (4, 6)"));
}

}  // namespace
}  // namespace rehearse::real
