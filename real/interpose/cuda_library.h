// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cuda_runtime_api.h>

#include "launches.h"

namespace rehearse::real {

// The functions of the libcudart that this process has loaded: what the process's own callers reach comes to ours
// first, where ours stand before them.
struct CudaLibrary {
  decltype(&::cudaStreamSynchronize) stream_synchronize;
  decltype(&::cudaEventSynchronize) event_synchronize;
  decltype(&::cudaDeviceSynchronize) device_synchronize;
  decltype(&::cudaMemcpy) memcpy;
  decltype(&::cudaMemcpyAsync) memcpy_async;
  decltype(&::cudaSetDevice) set_device;
  decltype(&::cudaGetDevice) get_device;
  decltype(&::cudaStreamQuery) stream_query;
  decltype(&::cudaEventCreateWithFlags) event_create;
  decltype(&::cudaEventRecord) event_record;
  decltype(&::cudaEventQuery) event_query;
  decltype(&::cudaEventDestroy) event_destroy;
  decltype(&::cudaPointerGetAttributes) pointer_attributes;
  decltype(&::cudaGetLastError) get_last_error;
  decltype(&::__cudaLaunchKernel) launch_kernel;  // null before CUDA 13

  // Null where none is loaded, or it lacks one of these; then the next call looks again.
  static const CudaLibrary* find() noexcept;
};

}  // namespace rehearse::real
