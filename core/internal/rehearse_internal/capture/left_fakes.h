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

// A tensor that may be gone.
class WeakTensor {
 public:
  explicit WeakTensor(const at::Tensor& tensor) : impl_(tensor.getIntrusivePtr()) {}
  // Undefined: it is gone.
  at::Tensor lock() const { return at::Tensor(impl_.lock()); }

 private:
  c10::weak_intrusive_ptr<c10::TensorImpl> impl_;
};

// The value with this number, of a segment that has run; else nothing.
using FindValue = std::function<c10::IValue(std::size_t number)>;

// Fakes that the code may still hold when its capture is gone: in a member, a captured variable, a global.
struct LeftFakes {
  std::vector<std::pair<WeakTensor, at::Tensor>> of_inputs;  // and the real tensors for which they stand, values too
  std::vector<std::pair<WeakTensor, std::size_t>> made;      // and which result of the segment each is
  Segment segment;                                           // no module: it is not known how they were made

  // Those that are still held become real tensors. `run` runs the segment, or gives nothing where that may not be: then
  // what was made stays fake, and every use of it is an error. Returns whether the code holds any.
  bool make_real(const std::function<std::vector<c10::IValue>(const Segment&)>& run) const;
};

}  // namespace rehearse::capture
