// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>

#include <ATen/core/Tensor.h>

namespace rehearse::checks {

// Whether the tensor contains a NaN or an Inf. False for dtypes without them, for undefined tensors and for tensors
// without data. Takes one pass over the data. Call it while an Unwatched (checks/unwatched.h) lives, so that watchers
// do not see its operators.
bool has_non_finite(const at::Tensor& tensor);

// For a tensor that contains a NaN or an Inf: the kind of the first of these values, "NaN" or "Inf".
std::string non_finite_kind(const at::Tensor& tensor);
// Describes the NaN and Inf of such a tensor, for example "NaN in 3 of 32 elements, first at [0, 2]". If the tensor
// contains both, the text begins with "NaN and Inf", and counts the elements of either kind.
std::string non_finite_text(const at::Tensor& tensor);

// has_nan() and nan_text() are has_non_finite() and non_finite_text() for NaN only: "NaN in 1 of 32 elements, first at
// [0, 2]".
bool has_nan(const at::Tensor& tensor);
std::string nan_text(const at::Tensor& tensor);

}  // namespace rehearse::checks
