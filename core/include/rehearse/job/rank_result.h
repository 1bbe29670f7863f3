// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <ATen/core/Tensor.h>

namespace rehearse {

// What a rank passed to RankContext::result().
struct RankResult {
  int rank = -1;
  std::string name;
  at::Tensor value;  // on the CPU, a copy
};

}  // namespace rehearse
