// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse_internal/capture/fake_errors.h>

namespace rehearse::capture {

// Code did something during a capture that no graph could repeat: a custom autograd function, a hook that communicates,
// backward(), or keeping a tensor alive that is not among the results.
class NotCapturable : public FakeError {
 public:
  using FakeError::FakeError;
};

// The refusal for code that keeps a tensor which is none of its results. `where`: the call that made the tensor.
NotCapturable kept_tensor(const exec::CallSite& where);

}  // namespace rehearse::capture
