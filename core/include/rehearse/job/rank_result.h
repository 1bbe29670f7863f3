// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <ATen/core/Tensor.h>

namespace rehearse {

// A value that a rank passed to RankContext::result().
struct RankResult {
  int rank = -1;
  std::string name;
  at::Tensor value;  // a copy on the CPU
};

}  // namespace rehearse
