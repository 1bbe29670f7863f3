// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <cuda_runtime_api.h>

// What nvcc makes of kernel<<<grid, block>>>(...). NVIDIA declares it for device code alone.
extern "C" cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                                          std::size_t shared_bytes, cudaStream_t stream);

namespace rehearse::real {

// A rank that has launched so many kernels lets the others launch theirs. One thread gives work to all devices: without
// this the last rank's would have nothing to do until all others have issued what comes before their next collective.
inline constexpr int kLaunchesOfATurn = 4;

}  // namespace rehearse::real
