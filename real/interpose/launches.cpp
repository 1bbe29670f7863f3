// SPDX-License-Identifier: BSD-3-Clause
// A replacement for libcudart's launch of kernels, at which ranks take turns.
#include "launches.h"

#include <rehearse_internal/exec/this_rank.h>
#include <rehearse_internal/exec/world_local.h>

#include "interpose/cuda_library.h"
#include "interpose/device_waits.h"

// The library's link options name this symbol, so that the linker keeps this file.
extern "C" {
extern const int rehearse_launches;
const int rehearse_launches = 1;
}

namespace rehearse::real {
namespace {

// The number of the thread's launches since ranks last took turns.
constinit thread_local int t_launches = 0;

void take_turns() noexcept {
  if (++t_launches < kLaunchesOfATurn) return;
  t_launches = 0;
  if (exec::this_rank::is_fiber() && exec::WorldLocal<DeviceWaits>::find() != nullptr) exec::this_rank::give_way();
}

}  // namespace
}  // namespace rehearse::real

extern "C" __attribute__((visibility("default"))) cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid,
                                                                                 dim3 block, void** arguments,
                                                                                 std::size_t shared_bytes,
                                                                                 cudaStream_t stream) {
  const auto* const cuda = rehearse::real::CudaLibrary::find();
  if (cuda == nullptr || cuda->launch_kernel == nullptr) return cudaErrorSharedObjectSymbolNotFound;
  rehearse::real::take_turns();
  return cuda->launch_kernel(kernel, grid, block, arguments, shared_bytes, stream);
}
