// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace rehearse::capture {

// From now on, captures note each refusal (an error that says why code cannot be captured) when it is thrown, including
// LibTorch's own errors about fakes. The code may catch the error and then do something that it would not do without a
// capture. Lasts for the life of the process.
void watch_refusals();

}  // namespace rehearse::capture
