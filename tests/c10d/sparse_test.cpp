// SPDX-License-Identifier: BSD-3-Clause
// Contract: c10d's allreduce turns a sparse COO tensor into the coalesced sum on every rank, for any number of
// values on each rank and any schedule.
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rehearse/rehearse.h>

#include "bit_equal.h"

namespace rehearse {
namespace {

using rehearse::test::BitEqual;

// Rank r has r values, which lie in row r and in row 1 in turns. So rank 0 has none, and ranks from 3 on have row r
// more than once.
at::Tensor of_rank(int rank) {
  std::vector<std::int64_t> rows;
  for (int i = 0; i < rank; ++i) rows.push_back(i % 2 == 0 ? rank : 1);
  const auto count = static_cast<std::int64_t>(rows.size());
  const auto index = at::tensor(rows, at::kLong).view({1, count});
  return at::sparse_coo_tensor(index, at::full({count, 2}, static_cast<double>(rank)), {8, 2});
}

TEST(SparseAllReduce, SumsTheUnionOfIndices_OnEveryRank) {
  for (const int ranks : {1, 2, 3, 5, 8}) {
    auto dense = at::zeros({8, 2});
    for (int r = 0; r < ranks; ++r) dense += of_rank(r).to_dense();
    check({.ranks = ranks}, [&](RankContext& ctx) {
      auto tensor = of_rank(ctx.rank());
      ctx.group().allreduce(tensor)->wait();
      EXPECT_TRUE(tensor.is_coalesced());
      EXPECT_THAT(tensor.to_dense(), BitEqual(dense)) << "rank " << ctx.rank() << " of " << ranks;
      EXPECT_EQ(tensor._nnz(), ranks - 1);
    });
  }
}

TEST(SparseAllReduce, BackendsOwnCall_IsTheSame) {
  check({.ranks = 3}, [](RankContext& ctx) {
    auto tensors = std::vector<at::Tensor>{of_rank(ctx.rank())};
    const auto work = ctx.group()->getBackend(at::kCPU)->allreduce_sparse(tensors);
    EXPECT_EQ(work->retrieveOpType(), c10d::OpType::_ALLREDUCE_SPARSE);
    work->wait();
    EXPECT_TRUE(work->result().at(0).is_same(tensors[0]));
    EXPECT_EQ(tensors[0].to_dense()[2][0].item<double>(), 2);
    EXPECT_EQ(tensors[0].to_dense()[1][0].item<double>(), 1 + 2);
  });
}

}  // namespace
}  // namespace rehearse
