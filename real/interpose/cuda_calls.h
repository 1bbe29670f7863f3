// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace rehearse::real {

// Checks that the process's calls of cudaStreamSynchronize, and of the other functions of libcudart that this folder
// replaces, reach our functions. Otherwise one waiting rank would stop all ranks. Throws RunnerUnavailable, which says
// how to link.
void require_cuda_calls();

// Makes `device` the calling thread's current device and returns the previous one. Asks libcudart for the previous
// device only the first time in a thread, because all later changes come through our cudaSetDevice. Returns -1 if the
// previous device is unknown. If libcudart refuses `device`, the current device stays. For
// TorchStateOptions::exchange_device.
int exchange_cuda_device(int device) noexcept;

}  // namespace rehearse::real
