// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse_internal/capture/fake_errors.h>

namespace rehearse::capture {

// Code did something during a capture that no graph could repeat. For example, the code called backward() or a custom
// autograd function, or kept a tensor that is not among its results.
class NotCapturable : public FakeError {
 public:
  using FakeError::FakeError;
};

// The refusal for code that keeps a tensor which is none of its results. `where`: the call that made the tensor.
NotCapturable kept_tensor(const exec::CallSite& where);

}  // namespace rehearse::capture
