// SPDX-License-Identifier: BSD-3-Clause
// A library that links libcudart and is opened at run time, like libtorch_cuda.
#include "fake_cudart.h"
#include "interpose/launches.h"

extern "C" rehearse::real::CudartUser make_cudart_user() {
  return {
      [](cudaStream_t stream) { return cudaStreamSynchronize(stream); },
      [](cudaEvent_t event) { return cudaEventSynchronize(event); },
      [] { return cudaDeviceSynchronize(); },
      [](void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
        return cudaMemcpy(to, from, bytes, kind);
      },
      [](void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
        return cudaMemcpyAsync(to, from, bytes, kind, stream);
      },
      [](int device) { return cudaSetDevice(device); },
      [](int of_rank) {
        void* arguments[] = {&of_rank};
        return __cudaLaunchKernel(nullptr, {}, {}, arguments, 0, nullptr);
      },
  };
}
