// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "interpose/cuda_library.h"
#include "interpose/device_waits.h"

// Calls of libcudart that wait for a device, replaced so that only the calling rank waits. They return what libcudart's
// calls would return.
namespace rehearse::real {

cudaError_t wait_for_stream(DeviceWaits& waits, const CudaLibrary& cuda, cudaStream_t stream, const char* call);
cudaError_t wait_for_event(DeviceWaits& waits, const CudaLibrary& cuda, cudaEvent_t event);

// Waits for all streams of the calling thread's current device. No event marks that point: the streams of LibTorch and
// NCCL do not wait for the default stream, and the default stream does not wait for them. So the call runs on a thread
// of its own.
cudaError_t wait_for_device(DeviceWaits& waits, const CudaLibrary& cuda);

// True if an asynchronous copy waits for the earlier work in the stream. A copy from host to host waits, and a copy
// that writes host memory that CUDA does not know, or reads more than 64 KiB of such memory. A copy that reads fewer
// bytes does not wait, because CUDA fetches them during the call.
bool copy_waits(const CudaLibrary& cuda, void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind);

}  // namespace rehearse::real
