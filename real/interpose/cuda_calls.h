// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace rehearse::real {

// Checks that the process's calls of cudaStreamSynchronize, and of the other functions of libcudart that wait for a
// device, reach our functions. Otherwise one waiting rank would stop all ranks. Throws RunnerUnavailable, which says
// how to link.
void require_cuda_calls();

// Makes `device` the calling thread's current device and returns the previous one. Does not ask the driver, because all
// changes come through our cudaSetDevice. For TorchStateOptions::exchange_device. Returns unknown (-1) if libcudart
// fails.
int exchange_cuda_device(int device) noexcept;

}  // namespace rehearse::real
