// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <rehearse_internal/capture/fake_tensor.h>
#include <rehearse_internal/capture/joint_graph.h>

namespace rehearse::shapes {
class ShapeEnv;
}

namespace rehearse::capture {

// The memory layout that a result's gradient is assumed to have: the same order of dimensions as the result. If strides
// are symbols, their hints decide the order; without hints, the order is row-major.
TangentForm usual_form(const at::Tensor& result, const std::shared_ptr<shapes::ShapeEnv>& shapes);

// Describes a gradient of `result` in `form`.
TensorSpec tangent_spec(const at::Tensor& result, const TangentForm& form);

}  // namespace rehearse::capture
