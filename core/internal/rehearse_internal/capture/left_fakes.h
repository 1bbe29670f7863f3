// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/util/intrusive_ptr.h>

#include <rehearse/capture/segments.h>

namespace rehearse::capture {

// A reference to a tensor that does not keep it alive.
class WeakTensor {
 public:
  explicit WeakTensor(const at::Tensor& tensor) : impl_(tensor.getIntrusivePtr()) {}
  // Undefined if the tensor is gone.
  at::Tensor lock() const { return at::Tensor(impl_.lock()); }

 private:
  c10::weak_intrusive_ptr<c10::TensorImpl> impl_;
};

// Returns the value with this number if its segment has run; else None.
using FindValue = std::function<c10::IValue(std::size_t number)>;

// Fakes that the code may still hold after its capture: in a member, a captured variable, a global.
struct LeftFakes {
  std::vector<std::pair<WeakTensor, at::Tensor>> of_inputs;  // inputs and earlier values, with their real tensors
  std::vector<std::pair<WeakTensor, std::size_t>> made;      // fakes of `segment`'s results, with their indices
  Segment segment;                                           // computes `made`; no module if that is impossible

  // Turns the fakes that the code still holds into real tensors. `run` runs the segment, or returns an empty list if
  // the segment must not run; the fakes in `made` then stay fakes, and every use of them is an error. Returns whether
  // the code still held any of the fakes.
  bool make_real(const std::function<std::vector<c10::IValue>(const Segment&)>& run) const;
};

}  // namespace rehearse::capture
