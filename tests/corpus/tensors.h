// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <ATen/ATen.h>

namespace corpus {

// Output tensors for an all-gather.
inline std::vector<at::Tensor> room_for(const at::Tensor& one, int ranks) {
  std::vector<at::Tensor> all;
  for (int rank = 0; rank < ranks; ++rank) all.push_back(at::empty_like(one));
  return all;
}

}  // namespace corpus
