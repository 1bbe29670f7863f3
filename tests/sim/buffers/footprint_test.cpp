// SPDX-License-Identifier: BSD-3-Clause
// Contract: two tensors overlap if they share a byte, whatever their strides.
#include <ATen/ops/as_strided.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "buffers/footprint.h"

namespace rehearse::sim {
namespace {

bool overlap_both_ways(const at::Tensor& a, const at::Tensor& b) {
  const bool one_way = overlap(Footprint(a), Footprint(b));
  EXPECT_EQ(overlap(Footprint(b), Footprint(a)), one_way);
  return one_way;
}

TEST(Footprint, HalvesOfATensor_LieApart) {
  const auto all = at::zeros({8});
  EXPECT_FALSE(overlap_both_ways(all.slice(0, 0, 4), all.slice(0, 4, 8)));
  EXPECT_TRUE(overlap_both_ways(all.slice(0, 0, 5), all.slice(0, 4, 8)));
  EXPECT_TRUE(overlap_both_ways(all, all.slice(0, 7, 8)));
}

TEST(Footprint, Columns_LieApartThoughTheirBoundsDoNot) {
  const auto all = at::zeros({4, 6});
  EXPECT_FALSE(overlap_both_ways(all.select(1, 0), all.select(1, 1)));
  EXPECT_FALSE(overlap_both_ways(all.slice(1, 0, 3), all.slice(1, 3, 6)));
  EXPECT_TRUE(overlap_both_ways(all.slice(1, 0, 3), all.slice(1, 2, 6)));
  EXPECT_TRUE(overlap_both_ways(all.select(1, 2), all.select(0, 3)));
}

TEST(Footprint, TransposedTensor_IsOneRun) {
  const auto all = at::zeros({4, 6});
  EXPECT_EQ(Footprint(all.t()).runs().size(), 1u);
  EXPECT_EQ(Footprint(all.slice(1, 0, 3)).runs().size(), 4u);
  EXPECT_EQ(Footprint(all.slice(1, 0, 3)).runs()[1].size(), 12u);
}

TEST(Footprint, ExpandedAndOverlappingStrides) {
  const auto all = at::zeros({8});
  EXPECT_EQ(Footprint(all.slice(0, 0, 1).expand({5})).bounds().size(), 4u);
  EXPECT_TRUE(overlap_both_ways(all.slice(0, 0, 1).expand({5}), all));
  EXPECT_FALSE(overlap_both_ways(all.slice(0, 0, 1).expand({5}), all.slice(0, 1, 8)));
  const auto windows = at::as_strided(all, {3, 4}, {2, 1});
  EXPECT_EQ(Footprint(windows).bounds().size(), 32u);
  EXPECT_TRUE(overlap_both_ways(windows, all.slice(0, 7, 8)));
}

TEST(Footprint, OtherStorageOfTheSameMemory_Overlaps) {
  const auto all = at::zeros({8});
  const auto alias = at::from_blob(all.data_ptr<float>() + 6, {2}, at::kFloat);
  EXPECT_TRUE(overlap_both_ways(all, alias));
  EXPECT_FALSE(overlap_both_ways(all.slice(0, 0, 6), alias));
}

TEST(Footprint, WithoutMemory_OverlapsNothing) {
  const auto all = at::zeros({8});
  EXPECT_FALSE(overlap_both_ways(at::Tensor(), all));
  EXPECT_FALSE(overlap_both_ways(all.slice(0, 3, 3), all));
  EXPECT_FALSE(overlap_both_ways(at::empty({8}, at::device(at::kMeta)), all));
}

}  // namespace
}  // namespace rehearse::sim
