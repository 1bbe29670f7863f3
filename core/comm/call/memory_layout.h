// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <rehearse_internal/comm/operation.h>

// How the elements of a dense tensor lie in memory. Gloo and NCCL move the memory of many calls as it lies, from the
// first element on, and know of no strides.
namespace rehearse::comm {

// Without gaps, and no element twice: in some order of its dimensions it is contiguous.
inline bool fills_its_memory(const at::Tensor& tensor) {
  return tensor.is_contiguous() || tensor.is_non_overlapping_and_dense();
}

// Do elements of the same indices lie at the same places? Tensors with gaps count as contiguous: what does not refuse
// them makes contiguous copies.
bool same_layout(const at::Tensor& a, const at::Tensor& b);

// Is there a memory format in which both are contiguous?
bool same_format(const at::Tensor& a, const at::Tensor& b);

// The strides, normalised: dimensions of size 1 get their contiguous stride.
c10::SmallVector<std::int64_t, 5> telling_strides(const at::Tensor& tensor);

// The tensor of a collective that Gloo moves as it lies, so that all ranks must have laid it out alike; null: there is
// none. Of all-gathers, gathers and coalesced all-reduces Gloo makes contiguous copies; those of an all-to-all are a
// matter of each edge.
const at::Tensor* moved_as_it_lies(const Operation& call) noexcept;

// The same if it is not contiguous; else null.
const at::Tensor* tensor_laid_out(const Operation& call) noexcept;

// "[5, 1]": the strides that tell something.
std::string strides_text(const at::Tensor& tensor);

// "sizes [4, 2] and strides [5, 1]".
std::string layout_text(const at::Tensor& tensor);

}  // namespace rehearse::comm
