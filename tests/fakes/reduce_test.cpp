// SPDX-License-Identifier: BSD-3-Clause
// Contract: a reduction by the fabric equals ATen's operations, applied one after the other in rank order. This holds
// for each reduction and dtype that the fabric accepts, on every rank with an output. MIN and MAX with a NaN follow the
// order of Gloo's ring.
#include <cmath>

#include "bit_equal.h"
#include "group_fixture.h"

namespace rehearse::fakes::testing {
namespace {

using c10d::OpType;
using rehearse::test::BitEqual;
using Op = c10d::ReduceOp::RedOpType;

constexpr Op kArithmetic[] = {Op::SUM, Op::AVG, Op::PRODUCT, Op::MIN, Op::MAX};
constexpr Op kBitwise[] = {Op::BAND, Op::BOR, Op::BXOR};

std::vector<Op> ops_of(at::ScalarType dtype) {
  if (at::isComplexType(dtype)) return {Op::SUM, Op::AVG};
  std::vector<Op> ops(std::begin(kArithmetic), std::end(kArithmetic));
  if (dtype == at::kBool) std::erase(ops, Op::AVG);
  if (at::isIntegralType(dtype, true)) ops.insert(ops.end(), std::begin(kBitwise), std::end(kBitwise));
  return ops;
}

// ATen has two conversions to bfloat16, which make different NaNs. So here, all NaNs are one number, as a double, which
// has all numbers of the other dtypes.
void expect_values(const at::Tensor& found, const at::Tensor& expected) {
  const auto with_one_nan = [](const at::Tensor& values) {
    if (!values.is_floating_point()) return values;
    const at::Tensor wide = values.to(at::kDouble);
    return wide.masked_fill(wide.isnan(), std::nan(""));
  };
  EXPECT_EQ(found.scalar_type(), expected.scalar_type());
  EXPECT_THAT(with_one_nan(found), BitEqual(with_one_nan(expected)));
}

class Reduction : public FabricTest, public ::testing::WithParamInterface<at::ScalarType> {
 protected:
  template <class Check>
  void for_all(const Check& check) {
    for (const Op op : ops_of(GetParam())) {
      for (const int ranks : kRanks) {
        for (const auto size : kSizes) {
          SCOPED_TRACE(::testing::Message() << comm::name_of(op) << ", " << ranks << " ranks, size " << size);
          check(op, ranks, size);
          if (HasFailure()) return;
        }
      }
    }
  }

  std::vector<at::Tensor> inputs_of(int ranks, at::IntArrayRef sizes) const {
    std::vector<at::Tensor> inputs;
    for (int r = 0; r < ranks; ++r) inputs.push_back(random_tensor(sizes, GetParam(), r, true));
    return inputs;
  }
};

TEST_P(Reduction, AllReduce_IsWhatAtenComputes) {
  for_all([&](Op op, int ranks, std::int64_t size) {
    const auto inputs = inputs_of(ranks, {size});
    Calls calls(OpType::ALLREDUCE, ranks);
    for (int r = 0; r < ranks; ++r) {
      calls[r].reduce_op = op;
      calls[r].inputs = {inputs[r].clone()};
      calls[r].outputs = calls[r].inputs;
    }
    run(calls);
    expect_values(calls[0].outputs[0], reduced(inputs, op));
    for (int r = 1; r < ranks; ++r) EXPECT_THAT(calls[r].outputs[0], BitEqual(calls[0].outputs[0]));
  });
}

TEST_P(Reduction, Reduce_OnlyTheRootChanges) {
  for_all([&](Op op, int ranks, std::int64_t size) {
    const auto inputs = inputs_of(ranks, {size});
    const int root = ranks - 1;
    Calls calls(OpType::REDUCE, ranks);
    for (int r = 0; r < ranks; ++r) {
      calls[r].reduce_op = op;
      calls[r].root = root;
      calls[r].inputs = {inputs[r].clone()};
      if (r == root) calls[r].outputs = calls[r].inputs;
    }
    run(calls);
    expect_values(calls[root].outputs[0], reduced(inputs, op));
    for (int r = 0; r < root; ++r) EXPECT_THAT(calls[r].inputs[0], BitEqual(inputs[r]));
  });
}

// Gloo reduces one tensor that holds all parts. If an element is NaN on some ranks, its position in that tensor decides
// whether the result is NaN.
TEST_P(Reduction, PartsOfACoalescedAllReduce_AreOneTensor) {
  const std::vector<std::int64_t> lengths{3, 1, 40, 0, 18};
  for (const Op op : ops_of(GetParam())) {
    for (const int ranks : kRanks) {
      SCOPED_TRACE(::testing::Message() << comm::name_of(op) << ", " << ranks << " ranks");
      const auto inputs = inputs_of(ranks, {62});
      Calls calls(OpType::ALLREDUCE_COALESCED, ranks);
      for (int r = 0; r < ranks; ++r) {
        for (const auto& piece : at::split_with_sizes(inputs[r].clone(), lengths)) {
          comm::Operation& part = calls[r].parts.emplace_back();
          part.type = OpType::ALLREDUCE;
          part.tag = comm::Operation::kCopied;
          part.reduce_op = op;
          part.inputs = part.outputs = {piece};
          calls[r].inputs.push_back(piece);
          calls[r].outputs.push_back(piece);
        }
      }
      run(calls);
      std::vector<at::Tensor> results(calls[0].outputs.begin(), calls[0].outputs.end());
      expect_values(at::cat(results), reduced(inputs, op));
    }
  }
}

TEST_P(Reduction, ReduceScatterBase_EachRankGetsItsPiece) {
  for_all([&](Op op, int ranks, std::int64_t size) {
    const auto inputs = inputs_of(ranks, {ranks * size});
    Calls calls(OpType::_REDUCE_SCATTER_BASE, ranks);
    for (int r = 0; r < ranks; ++r) {
      calls[r].reduce_op = op;
      calls[r].inputs = {inputs[r].clone()};
      calls[r].outputs = {at::empty({size}, GetParam())};
    }
    run(calls);
    const auto expected = reduced(inputs, op);
    for (int r = 0; r < ranks; ++r) {
      expect_values(calls[r].outputs[0], expected.narrow(0, r * size, size));
      EXPECT_THAT(calls[r].inputs[0], BitEqual(inputs[r]));
    }
  });
}

// Sizes differ between pieces, and some pieces are empty.
TEST_P(Reduction, ReduceScatter_UnevenPieces) {
  for_all([&](Op op, int ranks, std::int64_t size) {
    Calls calls(OpType::REDUCE_SCATTER, ranks);
    std::vector<std::vector<at::Tensor>> pieces(ranks);
    for (int i = 0; i < ranks; ++i) {
      const std::int64_t length = i % 3 == 2 ? 0 : size / (i + 1);
      for (int r = 0; r < ranks; ++r) pieces[i].push_back(random_tensor({length}, GetParam(), r * 31 + i));
      calls[i].outputs = {at::empty({length}, GetParam())};
    }
    for (int r = 0; r < ranks; ++r) {
      calls[r].reduce_op = op;
      for (int i = 0; i < ranks; ++i) calls[r].inputs.push_back(pieces[i][r].clone());
    }
    run(calls);
    for (int i = 0; i < ranks; ++i) {
      expect_values(calls[i].outputs[0], reduced(pieces[i], op));
      for (int r = 0; r < ranks; ++r) EXPECT_THAT(calls[r].inputs[i], BitEqual(pieces[i][r]));
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Dtype, Reduction,
                         ::testing::Values(at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kFloat8_e4m3fn,
                                           at::kFloat8_e5m2, at::kChar, at::kByte, at::kInt, at::kLong, at::kBool,
                                           at::kComplexFloat, at::kComplexDouble),
                         [](const auto& info) { return std::string(c10::toString(info.param)); });

class PremulSum : public FabricTest, public ::testing::WithParamInterface<at::ScalarType> {};

// Every rank has a factor of its own, as a number or as a tensor.
TEST_P(PremulSum, FactorsOfEachRank) {
  for (const int ranks : kRanks) {
    std::vector<at::Tensor> inputs;
    std::vector<double> factors;
    Calls calls(OpType::ALLREDUCE, ranks);
    for (int r = 0; r < ranks; ++r) {
      inputs.push_back(random_tensor({20'011}, GetParam(), r));
      factors.push_back(0.1 * (r + 1));
      calls[r].reduce_op = Op::PREMUL_SUM;
      calls[r].reduce_supplement =
          r % 2 == 0 ? c10::make_intrusive<c10d::NCCLPreMulSumSupplement>(factors[r])
                     : c10::make_intrusive<c10d::NCCLPreMulSumSupplement>(at::scalar_tensor(factors[r], at::kDouble));
      calls[r].inputs = {inputs[r].clone()};
      calls[r].outputs = calls[r].inputs;
    }
    run(calls);
    const auto expected = reduced(inputs, Op::PREMUL_SUM, factors);
    for (int r = 0; r < ranks; ++r) EXPECT_THAT(calls[r].outputs[0], BitEqual(expected)) << ranks << " ranks";
  }
}

INSTANTIATE_TEST_SUITE_P(Dtype, PremulSum,
                         ::testing::Values(at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kComplexFloat,
                                           at::kComplexDouble),
                         [](const auto& info) { return std::string(c10::toString(info.param)); });

// NCCL's average of integers: the sum wraps at the width of the dtype, then the division truncates towards zero.
TEST_F(FabricTest, AverageOfIntegers_WrapsThenTruncates) {
  Calls calls(OpType::ALLREDUCE, 2);
  for (int r = 0; r < 2; ++r) {
    calls[r].reduce_op = Op::AVG;
    calls[r].inputs = {at::tensor({100, -3, 7}, at::kLong).to(at::kChar)};
    if (r == 1) calls[r].inputs[0].add_(at::tensor({0, 0, 1}, at::kLong).to(at::kChar));
    calls[r].outputs = calls[r].inputs;
  }
  run(calls);
  EXPECT_THAT(calls[1].outputs[0], BitEqual(at::tensor({-28, -3, 7}, at::kLong).to(at::kChar)));
}

}  // namespace
}  // namespace rehearse::fakes::testing
