// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <unordered_set>
#include <vector>

#include <ATen/core/Tensor.h>

namespace rehearse::capture {

// The state of real tensors besides their data: whether they require grad, their gradients and hooks. C++ code changes
// it immediately and without an operator, so no graph could repeat the change.
class TensorStates {
 public:
  // Saves the tensor's current state. `name` is for messages. Further calls for the same tensor do nothing.
  void note(const at::Tensor& tensor, const std::string& name);
  // Notes a tensor that the code reached without getting it as an argument. check() throws if it is the gradient of
  // another noted tensor.
  void note_found(const at::Tensor& tensor) { found_.insert(tensor.unsafeGetTensorImpl()); }

  // Throws NotCapturable for the first tensor whose state has changed or whose gradient the code uses.
  void check() const;
  // True if a tensor began or ceased to require grad. No graph can repeat that change between two of its nodes.
  bool requires_grad_changed() const;
  // Restores the saved state, because the code will run again. Hooks stay, and so do histories.
  void restore();
  // Saves the current state again: what ran in between was not captured code.
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
