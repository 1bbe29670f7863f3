// SPDX-License-Identifier: BSD-3-Clause
// Calls of libcudart that LibTorch makes without running a kernel. The executable has these functions itself, so
// LibTorch's calls do not reach libcudart.
#include "cuda_runtime.h"

#include <cstdint>

#include <cuda_runtime_api.h>

namespace rehearse::real {

CudaRuntime cuda_runtime;

}  // namespace rehearse::real

using rehearse::real::cuda_runtime;

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = rehearse::real::CudaRuntime::kDevices;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  ++cuda_runtime.questions;
  *device = cuda_runtime.current_device;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  ++cuda_runtime.changes;
  cuda_runtime.current_device = device;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  properties->totalGlobalMem = std::size_t{8} << 30;
  properties->major = 9;
  properties->multiProcessorCount = 100;
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* all) {
  *free = *all = std::size_t{8} << 30;
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  static std::uintptr_t made = 0;
  *stream = reinterpret_cast<cudaStream_t>(++made);
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
}
