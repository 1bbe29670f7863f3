// SPDX-License-Identifier: BSD-3-Clause
// Contract: the fabric takes elements in logical order, for any strides. If an input overlaps its own rank's output,
// the fabric reads the input before it writes the output.
#include "bit_equal.h"
#include "group_fixture.h"

namespace rehearse::fakes::testing {
namespace {

using c10d::OpType;
using rehearse::test::BitEqual;
using Op = c10d::ReduceOp::RedOpType;

class Layout : public FabricTest {};

// The values in a tensor with one of four layouts.
at::Tensor laid_out(const at::Tensor& values, int kind) {
  const auto rows = values.size(0);
  const auto columns = values.size(1);
  at::Tensor result;
  switch (kind % 4) {
    case 0:
      result = at::zeros({rows, columns}, values.options());
      break;
    case 1:
      result = at::zeros({columns, rows}, values.options()).t();
      break;
    case 2:
      result = at::zeros({rows, 2 * columns + 1}, values.options()).slice(1, 1, 2 * columns + 1, 2);
      break;
    default:
      result = at::zeros({rows + 3, columns + 2}, values.options()).narrow(0, 2, rows).narrow(1, 1, columns);
  }
  return result.copy_(values);
}

TEST_F(Layout, AllReduce_EachRankItsOwnStrides) {
  for (const auto dtype : {at::kFloat, at::kHalf, at::kByte, at::kComplexDouble}) {
    for (const int ranks : kRanks) {
      for (const auto& sizes : {std::vector<std::int64_t>{3, 5}, {211, 97}, {1, 7}, {0, 4}}) {
        std::vector<at::Tensor> inputs;
        Calls calls(OpType::ALLREDUCE, ranks);
        for (int r = 0; r < ranks; ++r) {
          inputs.push_back(random_tensor(sizes, dtype, r));
          calls[r].reduce_op = Op::SUM;
          calls[r].inputs = {laid_out(inputs[r], r + 1)};
          calls[r].outputs = calls[r].inputs;
        }
        run(calls);
        const auto expected = reduced(inputs, Op::SUM);
        for (int r = 0; r < ranks; ++r) EXPECT_THAT(calls[r].outputs[0], BitEqual(expected)) << ranks << " rank " << r;
      }
    }
  }
}

// If all ranks have the same layout without gaps, the fabric goes through the elements in memory order. If a layout has
// gaps, the fabric must not change the memory in them.
TEST_F(Layout, AllReduce_ChannelsLastAndGaps) {
  std::vector<at::Tensor> inputs;
  for (int r = 0; r < 3; ++r) inputs.push_back(random_tensor({2, 3, 4, 5}, at::kFloat, r));
  Calls calls(OpType::ALLREDUCE, 3);
  for (int r = 0; r < 3; ++r) {
    calls[r].reduce_op = Op::MAX;
    calls[r].inputs = {inputs[r].to(at::MemoryFormat::ChannelsLast)};
    calls[r].outputs = calls[r].inputs;
  }
  run(calls);
  for (int r = 0; r < 3; ++r) EXPECT_THAT(calls[r].outputs[0], BitEqual(reduced(inputs, Op::MAX)));

  const auto base = at::zeros({10});
  Calls alone(OpType::BROADCAST, 2);
  alone[0].inputs = alone[0].outputs = {at::ones({5})};
  alone[1].inputs = alone[1].outputs = {base.slice(0, 0, 10, 2)};
  alone[0].root = alone[1].root = 0;
  run(alone);
  EXPECT_THAT(base, BitEqual(at::tensor({1, 0, 1, 0, 1, 0, 1, 0, 1, 0}, at::kFloat)));
}

TEST_F(Layout, Inputs_Expanded) {
  Calls calls(OpType::_REDUCE_SCATTER_BASE, 2);
  for (int r = 0; r < 2; ++r) {
    calls[r].reduce_op = Op::SUM;
    calls[r].inputs = {at::full({1, 1}, r + 1.0).expand({4, 3})};
    calls[r].outputs = {at::empty({3, 2}).t()};
  }
  run(calls);
  for (int r = 0; r < 2; ++r) EXPECT_THAT(calls[r].outputs[0], BitEqual(at::full({2, 3}, 3.0)));
}

TEST_F(Layout, Scalars) {
  Calls calls(OpType::ALLREDUCE, 3);
  for (int r = 0; r < 3; ++r) {
    calls[r].reduce_op = Op::SUM;
    calls[r].inputs = calls[r].outputs = {at::scalar_tensor(r + 1.0)};
  }
  run(calls);
  for (int r = 0; r < 3; ++r) EXPECT_THAT(calls[r].outputs[0], BitEqual(at::scalar_tensor(6.0)));
}

TEST_F(Layout, AllToAllBase_Strided) {
  Calls calls(OpType::ALLTOALL_BASE, 2);
  for (int r = 0; r < 2; ++r) {
    calls[r].inputs = {at::arange(r * 100, r * 100 + 8).view({2, 4}).t()};  // sizes 4 x 2
    calls[r].outputs = {at::zeros({2, 4}, at::kLong).t()};
    calls[r].input_splits = {4, 4};
    calls[r].output_splits = {4, 4};
  }
  run(calls);
  const auto from = [&](int r) { return calls[r].inputs[0]; };
  for (int r = 0; r < 2; ++r) {
    EXPECT_THAT(calls[r].outputs[0], BitEqual(at::cat({from(0).narrow(0, 2 * r, 2), from(1).narrow(0, 2 * r, 2)})));
  }
}

// Each rank's input lies inside its output: at the rank's own place (NCCL's in-place form), or at `place` on all ranks.
TEST_F(Layout, AllGatherBase_InputInsideOutput) {
  constexpr int kGroup = 4;
  constexpr std::int64_t kCount = 9'001;
  for (int place = 0; place < kGroup; ++place) {
    for (const bool own_place : {true, false}) {
      Calls calls(OpType::_ALLGATHER_BASE, kGroup);
      std::vector<at::Tensor> inputs;
      for (int r = 0; r < kGroup; ++r) {
        inputs.push_back(random_tensor({kCount}, at::kFloat, r));
        calls[r].outputs = {at::zeros({kGroup * kCount})};
        calls[r].inputs = {calls[r].outputs[0].narrow(0, (own_place ? r : place) * kCount, kCount)};
        calls[r].inputs[0].copy_(inputs[r]);
      }
      run(calls);
      for (int r = 0; r < kGroup; ++r) EXPECT_THAT(calls[r].outputs[0], BitEqual(at::cat(inputs))) << place;
    }
  }
}

TEST_F(Layout, AllGather_InputIsOneOfTheOutputs) {
  for (int place = 0; place < 3; ++place) {
    Calls calls(OpType::ALLGATHER, 3);
    for (int r = 0; r < 3; ++r) {
      for (int i = 0; i < 3; ++i) calls[r].outputs.push_back(at::full({5}, -1.0));
      calls[r].inputs = {calls[r].outputs[place].fill_(r)};
    }
    run(calls);
    for (int r = 0; r < 3; ++r) {
      for (int i = 0; i < 3; ++i) EXPECT_THAT(calls[r].outputs[i], BitEqual(at::full({5}, i * 1.0)));
    }
  }
}

TEST_F(Layout, ReduceScatterBase_OutputInsideInput) {
  constexpr int kGroup = 4;
  constexpr std::int64_t kCount = 9'001;
  for (int place = 0; place < kGroup; ++place) {
    for (const bool own_place : {true, false}) {
      Calls calls(OpType::_REDUCE_SCATTER_BASE, kGroup);
      std::vector<at::Tensor> inputs;
      for (int r = 0; r < kGroup; ++r) {
        inputs.push_back(random_tensor({kGroup * kCount}, at::kFloat, r));
        calls[r].reduce_op = Op::SUM;
        calls[r].inputs = {inputs[r].clone()};
        calls[r].outputs = {calls[r].inputs[0].narrow(0, (own_place ? r : place) * kCount, kCount)};
      }
      run(calls);
      const auto expected = reduced(inputs, Op::SUM);
      for (int r = 0; r < kGroup; ++r) {
        EXPECT_THAT(calls[r].outputs[0], BitEqual(expected.narrow(0, r * kCount, kCount))) << place;
      }
    }
  }
}

TEST_F(Layout, ReduceScatter_OutputIsOneOfTheInputs) {
  for (int place = 0; place < 3; ++place) {
    Calls calls(OpType::REDUCE_SCATTER, 3);
    for (int r = 0; r < 3; ++r) {
      calls[r].reduce_op = Op::SUM;
      for (int i = 0; i < 3; ++i) calls[r].inputs.push_back(at::full({4}, 10.0 * i + r));
      calls[r].outputs = {calls[r].inputs[place]};
    }
    run(calls);
    for (int r = 0; r < 3; ++r) EXPECT_THAT(calls[r].outputs[0], BitEqual(at::full({4}, 30.0 * r + 3)));
  }
}

TEST_F(Layout, AllToAll_InPlace) {
  Calls base(OpType::ALLTOALL_BASE, 3);
  Calls lists(OpType::ALLTOALL, 3);
  for (int r = 0; r < 3; ++r) {
    base[r].inputs = base[r].outputs = {at::arange(3 * r, 3 * r + 3)};
    base[r].input_splits = base[r].output_splits = {1, 1, 1};
    for (int i = 0; i < 3; ++i) lists[r].inputs.push_back(at::full({2}, 10.0 * r + i));
    lists[r].outputs = lists[r].inputs;
  }
  run(base);
  run(lists);
  for (int r = 0; r < 3; ++r) {
    EXPECT_THAT(base[r].outputs[0], BitEqual(at::tensor({r, 3 + r, 6 + r}, at::kLong)));
    for (int i = 0; i < 3; ++i) EXPECT_THAT(lists[r].outputs[i], BitEqual(at::full({2}, 10.0 * i + r)));
  }
}

TEST_F(Layout, GatherAndScatter_OverlapOnTheRoot) {
  for (int place = 0; place < 3; ++place) {
    Calls gather(OpType::GATHER, 3);
    Calls scatter(OpType::SCATTER, 3);
    for (int r = 0; r < 3; ++r) {
      gather[r].root = scatter[r].root = 1;
      gather[r].inputs = {at::full({4}, r * 1.0)};
      scatter[r].outputs = {at::zeros({4})};
      gather[1].outputs.push_back(at::full({4}, -1.0));
      scatter[1].inputs.push_back(at::full({4}, r + 5.0));
    }
    gather[1].inputs = {gather[1].outputs[place].fill_(1.0)};
    scatter[1].outputs = {scatter[1].inputs[place]};
    run(gather);
    run(scatter);
    for (int r = 0; r < 3; ++r) {
      EXPECT_THAT(gather[1].outputs[r], BitEqual(at::full({4}, r * 1.0)));
      EXPECT_THAT(scatter[r].outputs[0], BitEqual(at::full({4}, r + 5.0)));
    }
  }
}

}  // namespace
}  // namespace rehearse::fakes::testing
