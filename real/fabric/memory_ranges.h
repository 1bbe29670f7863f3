// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

namespace rehearse::real {

// The memory of a set of dense tensors. overlap() takes time in proportion to the number of added tensors.
class MemoryRanges {
 public:
  void add(std::span<const at::Tensor> tensors) {
    for (const auto& tensor : tensors) {
      if (tensor.nbytes() > 0) ranges_.push_back(range_of(tensor));
    }
  }

  bool overlap(std::span<const at::Tensor> tensors) const {
    return std::any_of(tensors.begin(), tensors.end(), [this](const at::Tensor& tensor) {
      const auto [begin, end] = range_of(tensor);
      return std::any_of(ranges_.begin(), ranges_.end(),
                         [&](const auto& range) { return begin < range.second && range.first < end; });
    });
  }

 private:
  using Range = std::pair<std::uintptr_t, std::uintptr_t>;

  static Range range_of(const at::Tensor& tensor) {
    const auto begin = reinterpret_cast<std::uintptr_t>(tensor.const_data_ptr());
    return {begin, begin + tensor.nbytes()};
  }

  std::vector<Range> ranges_;
};

}  // namespace rehearse::real
