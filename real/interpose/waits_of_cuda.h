// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "interpose/cuda_library.h"
#include "interpose/device_waits.h"

// Calls of libcudart that wait for a device, done so that the calling rank alone waits. They return what the calls of
// libcudart would.
namespace rehearse::real {

cudaError_t wait_for_stream(DeviceWaits& waits, const CudaLibrary& cuda, cudaStream_t stream, const char* call);
cudaError_t wait_for_event(DeviceWaits& waits, const CudaLibrary& cuda, cudaEvent_t event);

// Waits for all streams of the calling thread's current device. No event stands for that (those of LibTorch and NCCL do
// not wait for the default stream, nor it for them), so a thread of its own makes the call.
cudaError_t wait_for_device(DeviceWaits& waits, const CudaLibrary& cuda);

// Will an asynchronous copy wait for what is before it in the stream? Where it reads or writes host memory that CUDA
// does not know of, but for what is little enough to be handed over with the call.
bool copy_waits(const CudaLibrary& cuda, void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind);

}  // namespace rehearse::real
