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
  std::vector<std::pair<WeakTensor, at::Tensor>> of_inputs;  // with their real tensors; also earlier segments' values
  std::vector<std::pair<WeakTensor, std::size_t>> made;      // with the index of each in the segment's results
  Segment segment;                                           // makes them; no module: unknown how

  // Turns the fakes that the code still holds into real tensors. `run` runs the segment, or returns nothing if that is
  // not allowed. In that case the fakes in `made` stay fakes, and every use of them is an error. Returns whether the
  // code holds any.
  bool make_real(const std::function<std::vector<c10::IValue>(const Segment&)>& run) const;
};

}  // namespace rehearse::capture
