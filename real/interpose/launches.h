// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <cuda_runtime_api.h>

// nvcc turns kernel<<<grid, block>>>(...) into a call of this function. NVIDIA declares it only for device code.
extern "C" cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                                          std::size_t shared_bytes, cudaStream_t stream);

namespace rehearse::real {

// After this many launches of kernels by the ranks of a thread, the launching rank lets other ranks launch theirs. One
// thread gives work to all devices. Without turns, the last rank's device would be idle until all other ranks have
// issued everything before their next collective.
inline constexpr int kLaunchesOfATurn = 4;

}  // namespace rehearse::real
