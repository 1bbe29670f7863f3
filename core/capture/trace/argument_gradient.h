// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <ATen/core/Tensor.h>

namespace rehearse::capture {

// From now on grad() and mutable_grad() of the fake throw NotCapturable in captured code: whether an argument has a
// gradient, and which one, no guard tells. `source`: the argument's name. For real tensors that the code finds by
// itself TensorImpl::grad() does the same, which the source file defines (docs/decisions/0018).
void refuse_gradient_of(const at::Tensor& fake, std::string source);

// Whether captured code has given the real tensor, which it found, a history that only the graph makes.
bool begins_a_history(const at::TensorBase& real);

// While one lives, requires_grad() of a real tensor that captured code finds answers as its fake does: code may give it
// a history by an operator that only the graph runs. Each Tracer has one.
class CountedCapture {
 public:
  CountedCapture();
  ~CountedCapture();
  CountedCapture(const CountedCapture&) = delete;
  CountedCapture& operator=(const CountedCapture&) = delete;
};

}  // namespace rehearse::capture
