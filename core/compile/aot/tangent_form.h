// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include <rehearse_internal/capture/joint_graph.h>

namespace rehearse::compiler {

std::vector<std::int64_t> strides_of(const capture::TangentForm& form, at::IntArrayRef sizes);

// True if the tensor has the form. The strides of dimensions with one element do not matter. A tensor without elements
// has every form.
bool has_form(const at::Tensor& tensor, const capture::TangentForm& form);

// The tensor's form. Nothing if the tensor has gaps, or if elements overlap along a dimension that is not expanded.
std::optional<capture::TangentForm> form_of(const at::Tensor& tensor);

}  // namespace rehearse::compiler
