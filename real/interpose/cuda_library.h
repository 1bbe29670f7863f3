// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cuda_runtime_api.h>

#include "launches.h"

namespace rehearse::real {

// The functions of the libcudart that this process has loaded, not this folder's replacements.
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

  // Null if no libcudart is loaded, or if it lacks a function other than launch_kernel; then the next call looks again.
  static const CudaLibrary* find() noexcept;
};

}  // namespace rehearse::real
