// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>

#include <ATen/core/Tensor.h>

namespace rehearse::checks {

// The values on the tensor's device: dense, not quantized, contiguous. May share memory with `tensor`, which must be
// defined.
at::Tensor plain(const at::Tensor& tensor);

// plain(tensor) as doubles, or as complex doubles.
at::Tensor wide(const at::Tensor& tensor);

// A copy of the values that shares no memory with `tensor`. Undefined for an undefined tensor.
at::Tensor copied(const at::Tensor& tensor);

// A hash of the bytes of plain(tensor), the same on every machine.
std::uint64_t hash_of(const at::Tensor& tensor);

// Whether dtype, sizes and values are equal. NaN equals NaN, and -0 equals 0; strides are ignored. Undefined tensors
// equal each other. The values of two Meta tensors count as equal. Compares sparse tensors in their dense form. Call it
// while an Unwatched lives.
bool same_values(const at::Tensor& a, const at::Tensor& b);

// How two different tensors differ: "12 of 32 elements, by up to 0.125 at [3, 1]: 0.5, not 0.375". The first value is
// from `a`, the second from `b`.
std::string difference_text(const at::Tensor& a, const at::Tensor& b);

// "[3, 1]": the position of element number `flat` in row-major order.
std::string position_text(at::IntArrayRef sizes, std::int64_t flat);

}  // namespace rehearse::checks
