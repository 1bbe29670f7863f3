// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <compare>

#include <ATen/EmptyTensor.h>
#include <ATen/SparseTensorImpl.h>
#include <c10/core/InferenceMode.h>

#include "reduce/reduction.h"
#include "workspace.h"

namespace rehearse::fakes {
namespace {

at::SparseTensorImpl& sparse(const at::Tensor& tensor) {
  return static_cast<at::SparseTensorImpl&>(*tensor.unsafeGetTensorImpl());
}

// One row of a rank's values. Rows are sorted by index, then rank, then position.
struct Row {
  std::int64_t index = 0;  // index over all sparse dimensions, flattened
  std::size_t rank = 0;
  std::int64_t position = 0;  // among the rank's values
  auto operator<=>(const Row&) const = default;
};

class SparseSum {
 public:
  SparseSum(Calls calls, Workspace& workspace) : workspace_(workspace), shape_(sparse(calls[0]->inputs[0])) {
    find_reduction(calls[0]->inputs[0].scalar_type(), c10d::ReduceOp::SUM, how_);
    element_bytes_ = calls[0]->inputs[0].dtype().itemsize();
    row_elements_ = c10::multiply_integers(shape_.sizes().slice(static_cast<std::size_t>(shape_.sparse_dim())));
    for (const comm::Operation* const call : calls) add_rank(sparse(call->inputs[0]));
    std::ranges::sort(rows_);
  }

  // Returns new tensors with the result: indices and values.
  std::pair<at::Tensor, at::Tensor> run() {
    for (std::size_t first = 0; first < rows_.size(); first = end_of_index(first)) firsts_.push_back(first);
    const auto count = static_cast<std::int64_t>(firsts_.size());
    const auto dims = shape_.sparse_dim();
    c10::SmallVector<std::int64_t, 4> value_sizes{count};
    for (const auto size : shape_.sizes().slice(static_cast<std::size_t>(dims))) value_sizes.push_back(size);
    at::Tensor indices = at::detail::empty_cpu({dims, count}, at::kLong);
    at::Tensor values = at::detail::empty_cpu(value_sizes, c10::typeMetaToScalarType(shape_.dtype()));
    auto* const index = static_cast<std::int64_t*>(indices.unsafeGetTensorImpl()->mutable_data());
    auto* const value = static_cast<std::byte*>(values.unsafeGetTensorImpl()->mutable_data());
    for (std::size_t i = 0; i < firsts_.size(); ++i) {
      const Row& row = rows_[firsts_[i]];
      const auto& from = indices_[row.rank];
      const auto stored = static_cast<std::int64_t>(from.size()) / std::max<std::int64_t>(dims, 1);
      for (std::int64_t d = 0; d < dims; ++d) {
        index[d * count + static_cast<std::int64_t>(i)] = from[static_cast<std::size_t>(d * stored + row.position)];
      }
      sum_rows(firsts_[i], value + i * static_cast<std::size_t>(row_elements_) * element_bytes_);
    }
    return {std::move(indices), std::move(values)};
  }

 private:
  void add_rank(at::SparseTensorImpl& tensor) {
    const std::size_t rank = indices_.size();
    const auto dims = tensor.sparse_dim();
    const auto count = tensor.nnz();
    auto& indices = indices_.emplace_back(static_cast<std::size_t>(dims * count));
    gather(reinterpret_cast<std::byte*>(indices.data()), input_region(tensor.indices()), dims * count,
           sizeof(std::int64_t));
    workspace_.inputs.push_back(input_region(tensor.values()));
    for (std::int64_t position = 0; position < count; ++position) {
      std::int64_t index = 0;
      for (std::int64_t d = 0; d < dims; ++d) {
        index = index * tensor.size(d) + indices[static_cast<std::size_t>(d * count + position)];
      }
      rows_.push_back({index, rank, position});
    }
  }

  std::size_t end_of_index(std::size_t first) const {
    std::size_t end = first + 1;
    while (end < rows_.size() && rows_[end].index == rows_[first].index) ++end;
    return end;
  }

  // Sums all rows that have the index of row `first`.
  void sum_rows(std::size_t first, std::byte* out) {
    const auto block = static_cast<std::int64_t>(kBlockBytesMax / how_.kernel.accumulator_bytes) / how_.components;
    const std::size_t end = end_of_index(first);
    for (std::int64_t at = 0; at < row_elements_; at += block) {
      const std::int64_t length = std::min(block, row_elements_ - at);
      sum_block(first, end, at, length, out + static_cast<std::size_t>(at) * element_bytes_);
    }
  }

  void sum_block(std::size_t first, std::size_t end, std::int64_t at, std::int64_t length, std::byte* out) {
    const auto numbers = static_cast<std::size_t>(length * how_.components);
    void* const total = workspace_.accumulator.bytes;
    for (std::size_t i = first; i < end;) {
      std::size_t own_end = i + 1;
      while (own_end < end && rows_[own_end].rank == rows_[i].rank) ++own_end;
      const std::byte* part = block_of(rows_[i], at, length);
      if (own_end - i > 1) {
        // One rank has several values for this index. Round their sum before adding up the ranks, as coalesce() does.
        void* const own = workspace_.gathered[1].bytes;
        how_.kernel.load(own, part, numbers);
        for (std::size_t j = i + 1; j < own_end; ++j) how_.kernel.fold(own, block_of(rows_[j], at, length), numbers);
        store_block(workspace_.result.bytes, own, numbers);
        part = workspace_.result.bytes;
      }
      (i == first ? how_.kernel.load : how_.kernel.fold)(total, part, numbers);
      i = own_end;
    }
    store_block(out, total, numbers);
  }

  const std::byte* block_of(const Row& row, std::int64_t at, std::int64_t length) {
    const Region region = advanced(workspace_.inputs[row.rank], row.position * row_elements_ + at);
    if (is_contiguous(region)) return address(region, element_bytes_);
    gather(workspace_.gathered[0].bytes, region, length, element_bytes_);
    return workspace_.gathered[0].bytes;
  }

  void store_block(std::byte* to, const void* accumulator, std::size_t numbers) {
    if (how_.kernel.store != nullptr) {
      how_.kernel.store(to, accumulator, numbers);
    } else {
      std::memcpy(to, accumulator, numbers * how_.kernel.accumulator_bytes);
    }
  }

  Workspace& workspace_;
  const at::SparseTensorImpl& shape_;
  Reduction how_;
  std::size_t element_bytes_ = 0;
  std::int64_t row_elements_ = 0;
  std::vector<std::vector<std::int64_t>> indices_;  // by rank: sparse_dim x stored values
  std::vector<Row> rows_;
  std::vector<std::size_t> firsts_;  // the first row of each index
};

at::Tensor copy_of(const at::Tensor& tensor) {
  at::Tensor copy = at::detail::empty_cpu(tensor.sizes(), tensor.scalar_type());
  if (tensor.numel() > 0) {
    std::memcpy(copy.unsafeGetTensorImpl()->mutable_data(), tensor.unsafeGetTensorImpl()->data(), tensor.nbytes());
  }
  return copy;
}

}  // namespace

// Copies raw memory, like the other transfers: this may run in any rank's context, so it must dispatch no operator.
void allreduce_sparse(Calls calls, Workspace& workspace) {
  // The current rank may be in inference mode while others are not, but each rank gets some of the new tensors.
  const c10::InferenceMode guard(false);
  const auto [indices, values] = SparseSum(calls, workspace).run();
  for (std::size_t r = 0; r < calls.size(); ++r) {
    auto& output = sparse(calls[r]->outputs[0]);
    const bool last = r + 1 == calls.size();
    output.set_indices_and_values_unsafe(last ? indices : copy_of(indices), last ? values : copy_of(values));
    output.set_coalesced(true);
  }
}

}  // namespace rehearse::fakes
