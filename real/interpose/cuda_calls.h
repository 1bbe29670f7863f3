// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace rehearse::real {

// Checks that the process's callers of libcudart come to our functions: cudaStreamSynchronize and the others that wait
// for a device. Else one rank that waits would stop all. Throws RunnerUnavailable, which says how to link.
void require_cuda_calls();

// Makes a device the calling thread's current one, and returns which was: without asking the driver, since all changes
// come by our cudaSetDevice. For TorchStateOptions::exchange_device. Unknown (-1) where libcudart fails.
int exchange_cuda_device(int device) noexcept;

}  // namespace rehearse::real
