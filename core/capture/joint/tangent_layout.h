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

// How the gradient of a result is taken to lie in memory: as the result does, its dimensions in the same order.
// Where symbols decide, their hints do; without hints, row by row.
TangentForm usual_form(const at::Tensor& result, const std::shared_ptr<shapes::ShapeEnv>& shapes);

// A gradient of the result that lies like that.
TensorSpec tangent_spec(const at::Tensor& result, const TangentForm& form);

}  // namespace rehearse::capture
