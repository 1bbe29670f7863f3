// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/fsdp/shard_layout.h"

#include <algorithm>

#include <c10/util/accumulate.h>

namespace rehearse::parallel {

ShardLayout::ShardLayout(at::IntArrayRef sizes, int ranks)
    : sizes_(sizes.vec()),
      ranks_(ranks),
      row_elements_(c10::multiply_integers(sizes.slice(1))),
      chunk_((sizes[0] + ranks - 1) / ranks) {}

std::int64_t ShardLayout::first_row(int rank) const { return std::min(rank * chunk_, sizes_[0]); }

std::int64_t ShardLayout::rows_of(int rank) const { return first_row(rank + 1) - first_row(rank); }

std::vector<std::int64_t> ShardLayout::shard_sizes(int rank) const {
  auto sizes = sizes_;
  sizes[0] = rows_of(rank);
  return sizes;
}

template <class Copy>
void ShardLayout::for_each_part(const at::Tensor& buffer, std::int64_t offset, const at::Tensor& whole,
                                Copy&& copy) const {
  if (whole.numel() == 0) return;
  const std::int64_t elements = padded_elements();
  const std::int64_t full = sizes_[0] / chunk_;  // number of ranks with `chunk` rows
  const at::Tensor flat = whole.view(-1);
  const at::Tensor of_ranks = buffer.narrow(1, offset, elements);
  if (full > 0) copy(flat.narrow(0, 0, full * elements).view({full, elements}), of_ranks.narrow(0, 0, full));
  if (const std::int64_t rest = flat.size(0) - full * elements; rest > 0) {
    copy(flat.narrow(0, full * elements, rest), of_ranks.select(0, full).narrow(0, 0, rest));
  }
}

void ShardLayout::copy_out(const at::Tensor& buffer, std::int64_t offset, const at::Tensor& whole) const {
  for_each_part(buffer, offset, whole, [](const at::Tensor& to, const at::Tensor& from) { to.copy_(from); });
}

void ShardLayout::copy_in(const at::Tensor& buffer, std::int64_t offset, const at::Tensor& whole) const {
  for_each_part(buffer, offset, whole, [](const at::Tensor& from, const at::Tensor& to) { to.copy_(from); });
}

}  // namespace rehearse::parallel
