// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include <rehearse_internal/capture/joint_graph.h>

namespace rehearse::compiler {

// Strides of a tensor of these sizes that has the form.
std::vector<std::int64_t> strides_of(const capture::TangentForm& form, at::IntArrayRef sizes);

// Whether the tensor lies like that; strides of dimensions with one element say nothing.
bool has_form(const at::Tensor& tensor, const capture::TangentForm& form);

// The tensor's form; none where it has gaps or overlaps otherwise.
std::optional<capture::TangentForm> form_of(const at::Tensor& tensor);

}  // namespace rehearse::compiler
