// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <rehearse_internal/comm/operation.h>

// The layout of a dense tensor's elements in memory. In many calls Gloo and NCCL ignore strides and copy the memory as
// one block, from the first element on.
namespace rehearse::comm {

// The memory has no gaps and no overlapping elements: the tensor is contiguous for some order of its dimensions.
inline bool fills_its_memory(const at::Tensor& tensor) {
  return tensor.is_contiguous() || tensor.is_non_overlapping_and_dense();
}

// Whether elements with equal indices are at equal places. Tensors with gaps count as contiguous, because operations
// that accept them make contiguous copies.
bool same_layout(const at::Tensor& a, const at::Tensor& b);

// Whether both tensors are contiguous in the same memory format. Also true if one of them has no elements.
bool same_format(const at::Tensor& a, const at::Tensor& b);

// The normalised strides: dimensions of size 1, and all dimensions of a contiguous tensor, get their contiguous stride.
c10::SmallVector<std::int64_t, 5> telling_strides(const at::Tensor& tensor);

// Returns the tensor of a collective if Gloo ignores the strides of this tensor. All ranks must then use the same
// layout. Null if there is no such tensor: Gloo makes contiguous copies in all-gathers, gathers and coalesced
// all-reduces, and in an all-to-all each edge has its own layout.
const at::Tensor* moved_as_it_lies(const Operation& call) noexcept;

// Returns moved_as_it_lies(), but null if the tensor counts as contiguous (see same_layout()).
const at::Tensor* tensor_laid_out(const Operation& call) noexcept;

// "[5, 1]": the normalised strides.
std::string strides_text(const at::Tensor& tensor);

// "sizes [4, 2] and strides [5, 1]".
std::string layout_text(const at::Tensor& tensor);

}  // namespace rehearse::comm
