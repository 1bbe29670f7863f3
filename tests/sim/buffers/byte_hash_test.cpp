// SPDX-License-Identifier: BSD-3-Clause
// Contract: the hash covers every byte of a small tensor. For a large tensor, it covers the ends and equally spaced
// places.
#include <cstdint>

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "buffers/byte_hash.h"

namespace rehearse::sim {
namespace {

at::Tensor bytes(std::int64_t count) { return at::zeros({count}, at::kByte); }

bool shows(const at::Tensor& tensor, std::int64_t place) {
  const Footprint footprint(tensor);
  const auto before = hash_of(footprint);
  EXPECT_EQ(hash_of(footprint), before);
  tensor.data_ptr<std::uint8_t>()[place] ^= 1;
  const bool differs = hash_of(footprint) != before;
  tensor.data_ptr<std::uint8_t>()[place] ^= 1;
  return differs;
}

TEST(ByteHash, EveryByteOfASmallTensorCounts) {
  for (const std::int64_t count : {1, 7, 31, 32, 33, 100}) {
    const auto tensor = bytes(count);
    for (std::int64_t place = 0; place < count; ++place) EXPECT_TRUE(shows(tensor, place)) << place << " of " << count;
  }
  const auto tensor = bytes(256 << 10);
  for (std::int64_t place = 0; place < tensor.numel(); place += 4097) EXPECT_TRUE(shows(tensor, place)) << place;
}

TEST(ByteHash, LargeTensor_EndsCountAndEveryLongStretch) {
  const auto tensor = bytes((4 << 20) + 5);
  EXPECT_TRUE(shows(tensor, 0));
  EXPECT_TRUE(shows(tensor, (64 << 10) - 1));
  EXPECT_TRUE(shows(tensor, tensor.numel() - 1));
  EXPECT_FALSE(shows(tensor, (64 << 10) + 100));
  const Footprint footprint(tensor);
  const auto before = hash_of(footprint);
  for (int i = 0; i < 4096; ++i) tensor.data_ptr<std::uint8_t>()[(1 << 20) + i] = 1;
  EXPECT_NE(hash_of(footprint), before);
}

TEST(ByteHash, GapsOfAStridedTensorDoNotCount) {
  const auto all = at::zeros({4, 4}, at::kByte);
  const Footprint left(all.slice(1, 0, 2));
  const auto before = hash_of(left);
  all.data_ptr<std::uint8_t>()[2] = 1;
  EXPECT_EQ(hash_of(left), before);
  all.data_ptr<std::uint8_t>()[1] = 1;
  EXPECT_NE(hash_of(left), before);
}

}  // namespace
}  // namespace rehearse::sim
