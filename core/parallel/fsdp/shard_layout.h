// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace rehearse::parallel {

// Divides a tensor along dimension 0 into the shards of a group's ranks, as torch.chunk() does. Each of the first ranks
// has `chunk` rows, the next rank has the remainder, and further ranks have none. In collectives every shard is padded
// to `chunk` rows.
class ShardLayout {
 public:
  // `sizes`: at least one dimension.
  ShardLayout(at::IntArrayRef sizes, int ranks);

  std::int64_t first_row(int rank) const;
  std::int64_t rows_of(int rank) const;
  std::vector<std::int64_t> shard_sizes(int rank) const;
  const std::vector<std::int64_t>& sizes() const noexcept { return sizes_; }
  // Elements of a padded shard.
  std::int64_t padded_elements() const noexcept { return chunk_ * row_elements_; }
  bool is_even() const noexcept { return chunk_ * ranks_ == sizes_[0]; }

  // copy_out() copies from `buffer` to `whole`, copy_in() from `whole` to `buffer`. `buffer`: [ranks, elements]; the
  // tensor's elements begin at `offset`. `whole`: contiguous, with the sizes of sizes().
  void copy_out(const at::Tensor& buffer, std::int64_t offset, const at::Tensor& whole) const;
  void copy_in(const at::Tensor& buffer, std::int64_t offset, const at::Tensor& whole) const;

 private:
  // Calls `copy(part of whole, part of buffer)` with parts of equal sizes, for all elements.
  template <class Copy>
  void for_each_part(const at::Tensor& buffer, std::int64_t offset, const at::Tensor& whole, Copy&& copy) const;

  std::vector<std::int64_t> sizes_;
  std::int64_t ranks_, row_elements_, chunk_;
};

}  // namespace rehearse::parallel
