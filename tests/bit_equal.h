// SPDX-License-Identifier: BSD-3-Clause
// A matcher of tensors that compares bits, and says what differs.
#pragma once

#include <cstdint>
#include <cstring>
#include <iomanip>
#include <ostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>

namespace at {

// GoogleTest prints tensors with this function. Large ones would bury what differs.
inline void PrintTo(const Tensor& tensor, std::ostream* out) {
  if (tensor.defined() && tensor.numel() > 100) {
    *out << tensor.scalar_type() << tensor.sizes();
  } else {
    *out << tensor;
  }
}

}  // namespace at

namespace rehearse::test {

// How `found` differs from `expected`; empty if both are undefined, or have the same dtype, sizes and bits. NaN equals
// the same NaN, and 0 differs from -0. Device, layout, strides and history do not count.
inline std::string bit_difference(const at::Tensor& found, const at::Tensor& expected) {
  const auto kind_of = [](const at::Tensor& tensor) {
    return tensor.defined() ? (std::ostringstream() << tensor.scalar_type() << tensor.sizes()).str() : "undefined";
  };
  if (kind_of(found) != kind_of(expected)) return "is " + kind_of(found) + " instead of " + kind_of(expected);
  if (!found.defined()) return "";
  const c10::NoGradGuard no_grad;
  const auto elements_of = [](const at::Tensor& tensor) {
    const at::Tensor dense = tensor.layout() == at::kStrided ? tensor : tensor.to_dense();
    return at::empty(tensor.sizes(), tensor.scalar_type()).copy_(dense);
  };
  const at::Tensor ours = elements_of(found), theirs = elements_of(expected);
  if (std::memcmp(ours.const_data_ptr(), theirs.const_data_ptr(), ours.nbytes()) == 0) return "";

  const auto bytes_of = [](const at::Tensor& elements) { return elements.unsqueeze(-1).view(at::kByte); };
  const at::Tensor places = bytes_of(ours).ne(bytes_of(theirs)).any(-1).nonzero().contiguous();
  const at::IntArrayRef first(places.const_data_ptr<std::int64_t>(), static_cast<std::size_t>(found.dim()));
  const auto text_of = [&](at::Tensor element) {
    for (const std::int64_t place : first) element = element[place];
    std::ostringstream text;
    text << std::setprecision(at::toRealValueType(element.scalar_type()) == at::kDouble ? 17 : 9) << element.item();
    const at::Tensor bytes = bytes_of(element).to(at::kLong);
    if (element.isnan().item<bool>()) {
      text << " (bytes " << at::IntArrayRef(bytes.const_data_ptr<std::int64_t>(), element.element_size()) << ")";
    }
    return text.str();
  };
  return (std::ostringstream() << "differs in " << places.size(0) << " of " << ours.numel() << " elements: " << first
                               << " is " << text_of(ours) << " instead of " << text_of(theirs))
      .str();
}

class BitEqualMatcher {
 public:
  using is_gtest_matcher = void;

  explicit BitEqualMatcher(at::Tensor expected) : expected_(std::move(expected)) {}

  bool MatchAndExplain(const at::Tensor& found, std::ostream* out) const {
    const std::string difference = bit_difference(found, expected_);
    if (out != nullptr && !difference.empty()) *out << "which " << difference;
    return difference.empty();
  }
  void DescribeTo(std::ostream* out) const { *out << "has the bits of " << testing::PrintToString(expected_); }
  void DescribeNegationTo(std::ostream* out) const {
    *out << "has other bits than " << testing::PrintToString(expected_);
  }

 private:
  at::Tensor expected_;
};

inline BitEqualMatcher BitEqual(at::Tensor expected) { return BitEqualMatcher(std::move(expected)); }

// For tensors that each have the bits of the expected tensor in their place.
inline auto BitEqual(const std::vector<at::Tensor>& expected) {
  return testing::ElementsAreArray(std::vector<BitEqualMatcher>(expected.begin(), expected.end()));
}

}  // namespace rehearse::test
