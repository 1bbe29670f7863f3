// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <rehearse/capture/fake_tensor.h>

namespace rehearse::shapes {
class ShapeEnv;
}

namespace rehearse::capture {

struct TangentLayout {
  TensorSpec spec;                      // without gaps
  std::vector<std::int64_t> dim_order;  // see Tangent
};

// How the gradient of a result is taken to lie in memory: as the result does, its dimensions in the same order.
// Where symbols decide, their hints do; without hints, row by row.
TangentLayout tangent_layout(const at::Tensor& result, const std::shared_ptr<shapes::ShapeEnv>& shapes);

}  // namespace rehearse::capture
