// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <exception>

#include <ATen/core/ivalue.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <rehearse_internal/comm/operation.h>

namespace rehearse::comm {

// The futures of one work: each is made when it is first asked for, and marked once. Marking runs the callbacks.
class WorkFutures {
 public:
  using Future = c10::intrusive_ptr<c10::ivalue::Future>;

  // Holds the list of output tensors; where the call is on a device, it synchronises with that.
  Future outputs(const Operation& call);
  bool has_outputs() const noexcept { return outputs_ != nullptr; }

  // Holds a c10d::WorkResult.
  Future result();
  bool has_result() const noexcept { return result_ != nullptr; }

  bool to_mark() const noexcept;
  // Nothing happens where nobody has asked for it, or it has been marked. `error`: null, or what the call failed with.
  void mark_outputs(const Operation& call, const std::exception_ptr& error);
  void mark_result(c10d::WorkResult result);

 private:
  Future outputs_;
  Future result_;
};

}  // namespace rehearse::comm
