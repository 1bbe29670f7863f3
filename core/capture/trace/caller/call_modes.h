// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>

#include <ATen/ThreadLocalState.h>
#include <c10/core/ScalarType.h>

namespace rehearse::capture {

// The thread-local modes that decide how LibTorch runs operators: dispatch keys, grad mode, autocast. The constructor
// saves the current ones.
class CallModes {
 public:
  CallModes();

  // Restores the saved modes while it lives.
  class Scope {
   public:
    explicit Scope(const CallModes& modes);
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope();

   private:
    std::array<c10::ScalarType, 2> autocast_dtypes_;
    at::ThreadLocalStateGuard guard_;
  };

 private:
  std::array<c10::ScalarType, 2> autocast_dtypes_;
  at::ThreadLocalState state_;
};

}  // namespace rehearse::capture
