// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace rehearse::capture {

// From now on a capture notes what it refuses where the exception is thrown: the code may catch it, and what it does
// then is not what it does without a capture. For LibTorch's own errors about fakes too. Once for the process.
void watch_refusals();

}  // namespace rehearse::capture
