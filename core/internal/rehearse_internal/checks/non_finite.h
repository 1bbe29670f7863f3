// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>

#include <ATen/core/Tensor.h>

namespace rehearse::checks {

// Does it hold a NaN or an Inf? No for types without them, for undefined tensors and those without data. One pass over
// the data; call it in an Unwatched.
bool has_non_finite(const at::Tensor& tensor);

// Of a tensor that has: "NaN" or "Inf", whichever comes first, and how much of it: "NaN in 3 of 32 elements, first at
// [0, 2]".
std::string non_finite_kind(const at::Tensor& tensor);
std::string non_finite_text(const at::Tensor& tensor);

// The same of NaN alone; nan_text() of a tensor that has one: "NaN in 1 of 32 elements, first at [0, 2]".
bool has_nan(const at::Tensor& tensor);
std::string nan_text(const at::Tensor& tensor);

}  // namespace rehearse::checks
