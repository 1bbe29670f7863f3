// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse_internal/capture/fake_errors.h>

namespace rehearse::capture {

// Code did something in a capture that no graph could repeat: a custom autograd function, a hook, backward(), a tensor
// that stays alive outside of the results.
class NotCapturable : public FakeError {
 public:
  using FakeError::FakeError;
};

// The code keeps a tensor beside its results, which was made at `where`.
NotCapturable kept_tensor(const exec::CallSite& where);

}  // namespace rehearse::capture
