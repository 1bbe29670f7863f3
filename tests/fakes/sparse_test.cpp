// SPDX-License-Identifier: BSD-3-Clause
// Contract: the all-reduce of sparse COO tensors gives Gloo's result: each rank's tensor is coalesced (values with
// equal indices are added in order of position), and then the ranks' tensors are added in rank order. The result is
// coalesced and the same on every rank. Ranks may have different numbers of values.
#include <map>

#include <gmock/gmock.h>

#include "bit_equal.h"
#include "group_fixture.h"

namespace rehearse::fakes::testing {
namespace {

using c10d::OpType;
using rehearse::test::BitEqual;
using Op = c10d::ReduceOp::RedOpType;
using Sizes = std::vector<std::int64_t>;

// `stored` values at random indices, which may repeat and come in any order.
at::Tensor random_sparse(const Sizes& sizes, std::int64_t sparse_dim, std::int64_t stored, at::ScalarType dtype,
                         int rank) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(static_cast<std::uint64_t>(rank) * 31 + 7);
  std::vector<at::Tensor> indices;
  Sizes value_sizes{stored};
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (static_cast<std::int64_t>(d) < sparse_dim) {
      indices.push_back(at::randint(0, sizes[d], {stored}, generator, at::kLong));
    } else {
      value_sizes.push_back(sizes[d]);
    }
  }
  const auto index = indices.empty() ? at::empty({0, stored}, at::kLong) : at::stack(indices);
  return at::sparse_coo_tensor(index, random_tensor(value_sizes, dtype, rank), sizes);
}

class Sparse : public FabricTest {
 protected:
  void allreduce(std::vector<at::Tensor> tensors) {
    Calls calls(OpType::_ALLREDUCE_SPARSE, static_cast<int>(tensors.size()));
    for (int r = 0; r < calls.size(); ++r) {
      calls[r].reduce_op = Op::SUM;
      calls[r].inputs = calls[r].outputs = {tensors[static_cast<std::size_t>(r)]};
    }
    run(calls);
  }

  std::string refusal(const at::Tensor& tensor, Op op = Op::SUM) {
    const comm::GroupIdentity group{0, "test", {0, 1}};
    comm::Operation call;
    call.type = OpType::_ALLREDUCE_SPARSE;
    call.reduce_op = op;
    call.inputs = call.outputs = {tensor};
    try {
      fabric.prepare(call, group, 0);
    } catch (const c10::Error& error) {
      return error.what_without_backtrace();
    }
    return "accepted";
  }
};

using Rows = std::map<Sizes, at::Tensor>;  // by index

void add(Rows& rows, const Sizes& index, const at::Tensor& value) {
  const auto [row, is_new] = rows.try_emplace(index, value);
  if (!is_new) row->second = row->second + value;
}

// Computes the all-reduce's sum directly: adds each rank's values in order of position, then adds the ranks' sums.
at::Tensor summed(const std::vector<at::Tensor>& tensors) {
  Rows all;
  for (const auto& tensor : tensors) {
    Rows own;
    for (std::int64_t i = 0; i < tensor._nnz(); ++i) {
      const auto index = tensor._indices().select(1, i).contiguous();
      const auto* const data = index.const_data_ptr<std::int64_t>();
      add(own, Sizes(data, data + index.numel()), tensor._values()[i]);
    }
    for (const auto& [index, value] : own) add(all, index, value);
  }
  const auto& first = tensors[0];
  auto indices = at::empty({first.sparse_dim(), static_cast<std::int64_t>(all.size())}, at::kLong);
  auto value_sizes = first._values().sizes().vec();
  value_sizes[0] = indices.size(1);
  auto values = at::empty(value_sizes, first.scalar_type());
  std::int64_t place = 0;
  for (const auto& [index, value] : all) {
    if (!index.empty()) indices.select(1, place).copy_(at::tensor(index, at::kLong));
    values[place++].copy_(value);
  }
  return at::_sparse_coo_tensor_unsafe(indices, values, first.sizes())._coalesced_(true);
}

void expect_on_all_ranks(const std::vector<at::Tensor>& tensors, const at::Tensor& expected) {
  for (std::size_t r = 0; r < tensors.size(); ++r) {
    ASSERT_TRUE(tensors[r].is_coalesced());
    EXPECT_THAT(tensors[r].indices(), BitEqual(expected.indices().contiguous())) << "rank " << r;
    EXPECT_THAT(tensors[r].values(), BitEqual(expected.values().contiguous())) << "rank " << r;
  }
}

TEST_F(Sparse, AllReduce_AddsInOrderOfRank) {
  struct Shape {
    Sizes sizes;
    std::int64_t sparse_dim;
  };
  for (const auto& [sizes, sparse_dim] :
       {Shape{{7}, 1}, {{50, 3}, 1}, {{4, 5}, 2}, {{3, 2, 4, 2, 2}, 3}, {{6, 0}, 1}, {{2, 3}, 0}, {{9, 6000}, 1}}) {
    for (const auto dtype : {at::kFloat, at::kByte, at::kComplexDouble}) {
      for (const int ranks : {1, 3, 8}) {
        for (const std::int64_t stored : {0, 1, 20}) {
          SCOPED_TRACE(::testing::Message()
                       << at::IntArrayRef(sizes) << ' ' << dtype << ", " << ranks << " ranks, " << stored);
          if (sparse_dim == 0 && stored > 1) continue;
          std::vector<at::Tensor> tensors, inputs;
          for (int r = 0; r < ranks; ++r) {
            // If `stored` is above 1, ranks have different numbers of values.
            const auto own = sparse_dim == 0 ? stored : stored + (stored > 1 ? r : 0);
            inputs.push_back(random_sparse(sizes, sparse_dim, own, dtype, r));
            tensors.push_back(inputs.back().clone());
          }
          allreduce(tensors);
          expect_on_all_ranks(tensors, summed(inputs));
          auto dense = inputs[0].to_dense();
          for (int r = 1; r < ranks; ++r) dense = dense + inputs[static_cast<std::size_t>(r)].to_dense();
          EXPECT_TRUE(at::allclose(tensors[0].to_dense(), dense));
          if (HasFailure()) return;
        }
      }
    }
  }
}

// As for dense half types, the fabric adds in float. It rounds once for each rank's own values, and once for the sum
// over ranks.
TEST_F(Sparse, HalfTypes_AreSummedInFloat) {
  for (const auto dtype : {at::kHalf, at::kBFloat16}) {
    const auto index = at::zeros({1, 1}, at::kLong);
    std::vector<at::Tensor> tensors, values;
    for (int r = 0; r < 8; ++r) {
      values.push_back(random_tensor({1, 33}, dtype, r));
      tensors.push_back(at::sparse_coo_tensor(index, values.back().clone(), {1, 33}));
    }
    allreduce(tensors);
    for (const auto& tensor : tensors) EXPECT_THAT(tensor.values(), BitEqual(reduced(values, Op::SUM)));
  }
}

TEST_F(Sparse, StridedIndicesAndValues) {
  const auto index = at::arange(12, at::kLong).view({6, 2}).t().remainder(4);
  const auto values = random_tensor({5, 6}, at::kFloat, 3).t();
  const auto tensor = [&] { return at::_sparse_coo_tensor_unsafe(index, values, {4, 4, 5}); };
  ASSERT_FALSE(tensor()._values().is_contiguous());
  ASSERT_FALSE(tensor()._indices().is_contiguous());
  std::vector<at::Tensor> tensors{tensor(), tensor()};
  allreduce(tensors);
  expect_on_all_ranks(tensors, summed({tensor(), tensor()}));
}

TEST_F(Sparse, MemoryOfTheResult_IsEachRanksOwn_AndInputsStayAsTheyWere) {
  const auto index = at::arange(3, at::kLong).unsqueeze(0);
  const auto values = at::ones({3});
  std::vector<at::Tensor> tensors;
  for (int r = 0; r < 3; ++r) tensors.push_back(at::_sparse_coo_tensor_unsafe(index, values, {5}));
  allreduce(tensors);
  EXPECT_THAT(values, BitEqual(at::ones({3})));
  tensors[0].values().zero_();
  tensors[0].indices().zero_();
  for (int r = 1; r < 3; ++r) {
    EXPECT_THAT(tensors[r].values(), BitEqual(at::full({3}, 3.0)));
    EXPECT_THAT(tensors[r].indices(), BitEqual(index));
  }
}

// The fabric runs in the context of the last rank that arrives.
TEST_F(Sparse, InferenceModeOfTheLastRank_DoesNotReachTheOthers) {
  const auto tensor = random_sparse({4}, 1, 2, at::kFloat, 0);
  {
    const c10::InferenceMode mode;
    allreduce({tensor});
  }
  EXPECT_FALSE(tensor._values().is_inference());
}

TEST_F(Sparse, Refusals) {
  const auto tensor = random_sparse({4}, 1, 2, at::kFloat, 0);
  EXPECT_EQ(refusal(tensor), "accepted");
  EXPECT_EQ(refusal(tensor, Op::MAX),
            "unsupported reduction operation (allreduce of sparse tensors only works with ReduceOp.SUM)");
  EXPECT_EQ(refusal(tensor.to(at::kShort)), "Invalid scalar type");
  EXPECT_THAT(refusal(at::ones({2})), ::testing::HasSubstr("the tensor must be sparse COO"));
}

}  // namespace
}  // namespace rehearse::fakes::testing
