// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace rehearse::parallel {

// How a tensor is cut into the shards of a group's ranks: along dimension 0, as torch.chunk() cuts. Each of the first
// ranks has `chunk` rows, the next one the rest, and those behind it none. On the way every shard has `chunk` rows.
class ShardLayout {
 public:
  // `sizes`: at least one dimension.
  ShardLayout(at::IntArrayRef sizes, int ranks);

  std::int64_t first_row(int rank) const;
  std::int64_t rows_of(int rank) const;
  std::vector<std::int64_t> shard_sizes(int rank) const;
  const std::vector<std::int64_t>& sizes() const noexcept { return sizes_; }
  // Elements of a shard on the way, with its padding.
  std::int64_t padded_elements() const noexcept { return chunk_ * row_elements_; }
  bool is_even() const noexcept { return chunk_ * ranks_ == sizes_[0]; }

  // `buffer`: [ranks, elements], of which those from `offset` on are the tensor's. `whole`: contiguous, of sizes().
  void copy_out(const at::Tensor& buffer, std::int64_t offset, const at::Tensor& whole) const;
  void copy_in(const at::Tensor& buffer, std::int64_t offset, const at::Tensor& whole) const;

 private:
  // Calls `copy(part of whole, part of buffer)`, of equal sizes, for all elements.
  template <class Copy>
  void for_each_part(const at::Tensor& buffer, std::int64_t offset, const at::Tensor& whole, Copy&& copy) const;

  std::vector<std::int64_t> sizes_;
  std::int64_t ranks_, row_elements_, chunk_;
};

}  // namespace rehearse::parallel
