// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include <cuda_runtime_api.h>

namespace rehearse::real {

// The behaviour of the stand-in for libcudart, and its counters. The stand-in takes any device number and any stream
// handle, and has one state for all of them.
struct FakeCudart {
  std::atomic<bool> busy{false};                // work in streams has not ended yet
  std::atomic<cudaError_t> error{cudaSuccess};  // the result of most calls
  std::atomic<cudaError_t> last_error{cudaSuccess};
  const void* pinned = nullptr;              // host memory that CUDA knows
  cudaStream_t of_another_device = nullptr;  // no event can be recorded in it

  std::atomic<int> current_device{0};
  std::atomic<int> device_questions{0};  // calls of cudaGetDevice()
  std::atomic<int> device_changes{0};    // calls of cudaSetDevice()
  std::atomic<int> blocked{0};           // blocking calls that found streams busy
  std::atomic<int> stream_synchronizes{0}, event_synchronizes{0}, device_synchronizes{0}, copies{0};
  std::atomic<int> events{0};  // events that exist
  std::vector<int> launches;   // the kernel's first argument, for each launch

  void reset() {
    this->~FakeCudart();
    new (this) FakeCudart;
  }
};

// Calls of libcudart by a library that links libcudart, as LibTorch's libraries do.
struct CudartUser {
  cudaError_t (*stream_synchronize)(cudaStream_t stream);
  cudaError_t (*event_synchronize)(cudaEvent_t event);
  cudaError_t (*device_synchronize)();
  cudaError_t (*memcpy)(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind);
  cudaError_t (*memcpy_async)(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream);
  cudaError_t (*set_device)(int device);
  cudaError_t (*launch)(int of_rank);
};

}  // namespace rehearse::real

extern "C" {
rehearse::real::FakeCudart* fake_cudart();      // the state of the stand-in
rehearse::real::CudartUser make_cudart_user();  // the calls of the library that uses the stand-in
}
