// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <ATen/core/Tensor.h>

namespace rehearse::checks {

// Its values in rows, on the tensor's device: dense, not quantized, one after the other; it may share memory with
// `tensor`, which is defined.
at::Tensor plain(const at::Tensor& tensor);

// A copy of the values that shares nothing with `tensor`; undefined for an undefined one.
at::Tensor copied(const at::Tensor& tensor);

// The same dtype, sizes and values? NaN is as NaN, -0 as 0; strides do not count. Undefined tensors are as each other.
// Sparse tensors count by their values in place. Call it in an Unwatched.
bool same_values(const at::Tensor& a, const at::Tensor& b);

// How two tensors differ that are not the same: "12 of 32 elements, by up to 0.125 at [3, 1]: 0.5, not 0.375". Of those
// of `a` against those of `b`.
std::string difference_text(const at::Tensor& a, const at::Tensor& b);

// "[3, 1]" of element `flat`, in order of rows.
std::string position_text(at::IntArrayRef sizes, std::int64_t flat);

}  // namespace rehearse::checks
