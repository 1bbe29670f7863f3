// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <exception>

#include <ATen/core/ivalue.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <rehearse_internal/comm/operation.h>

namespace rehearse::comm {

// The futures of one work. Each is made on demand and marked once. Marking runs the callbacks.
class WorkFutures {
 public:
  using Future = c10::intrusive_ptr<c10::ivalue::Future>;

  // Holds the list of output tensors. If the call is on a device, the future synchronises with it.
  Future outputs(const Operation& call);
  bool has_outputs() const noexcept { return outputs_ != nullptr; }

  // Holds a c10d::WorkResult.
  Future result();
  bool has_result() const noexcept { return result_ != nullptr; }

  bool to_mark() const noexcept;
  // These do nothing if no future was requested, or if it is already marked. `error`: the call's failure; null: none.
  void mark_outputs(const Operation& call, const std::exception_ptr& error);
  void mark_result(c10d::WorkResult result);

 private:
  Future outputs_;
  Future result_;
};

}  // namespace rehearse::comm
