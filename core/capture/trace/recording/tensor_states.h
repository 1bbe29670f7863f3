// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <unordered_set>
#include <vector>

#include <ATen/core/Tensor.h>

namespace rehearse::capture {

// What real tensors are beside their data: whether they require grad, their gradients and hooks. C++ changes that
// without an operator, and at once, so no graph could repeat it.
class TensorStates {
 public:
  // As the tensor is now; `name` is for people. Once for each tensor.
  void note(const at::Tensor& tensor, const std::string& name);
  // The code has found the tensor by itself: it must be no gradient of another one.
  void note_found(const at::Tensor& tensor) { found_.insert(tensor.unsafeGetTensorImpl()); }

  // Throws NotCapturable for the first tensor that is something else now, or whose gradient the code uses.
  void check() const;
  // Whether one of them requires grad now, or no longer: what was recorded before and behind that differs.
  bool requires_grad_changed() const;
  // Makes them what they were, but for hooks: the code will run again.
  void restore();
  // From now on they are what they are now: what ran meanwhile was no part of the captured code.
  void renew();

 private:
  struct State {
    at::Tensor tensor;
    std::string name;
    bool requires_grad = false;
    at::Tensor gradient = {};
    std::size_t hooks = 0;
  };
  static void renew(State& state);

  std::vector<State> states_;
  std::unordered_set<const c10::TensorImpl*> known_;
  std::unordered_set<const c10::TensorImpl*> found_;
};

}  // namespace rehearse::capture
