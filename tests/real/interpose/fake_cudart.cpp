// SPDX-License-Identifier: BSD-3-Clause
// A library that takes the place of libcudart.
#include "fake_cudart.h"

#include <cstring>
#include <new>
#include <thread>

#include "interpose/launches.h"

namespace {

rehearse::real::FakeCudart state;

cudaError_t body(cudaError_t result) {
  if (result != cudaSuccess) state.last_error = result;
  return result;
}

cudaError_t asked() { return body(state.busy ? cudaErrorNotReady : state.error.load()); }

// Blocks the thread, as a real wait would.
cudaError_t block(std::atomic<int>& count) {
  ++count;
  if (state.busy) ++state.blocked;
  while (state.busy) std::this_thread::yield();
  return body(state.error);
}

}  // namespace

extern "C" {

rehearse::real::FakeCudart* fake_cudart() { return &state; }

cudaError_t cudaStreamSynchronize(cudaStream_t) { return block(state.stream_synchronizes); }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return block(state.event_synchronizes); }
cudaError_t cudaDeviceSynchronize() { return block(state.device_synchronizes); }

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  std::memcpy(to, from, bytes);
  return block(state.copies);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t) {
  std::memcpy(to, from, bytes);
  ++state.copies;
  if (state.busy) ++state.blocked;
  return body(state.error);
}

cudaError_t cudaSetDevice(int device) {
  ++state.device_changes;
  if (state.error == cudaSuccess) state.current_device = device;
  return body(state.error);
}
cudaError_t cudaGetDevice(int* device) {
  ++state.device_questions;
  *device = state.current_device;
  return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t) { return asked(); }
cudaError_t cudaEventQuery(cudaEvent_t) { return asked(); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = reinterpret_cast<cudaEvent_t>(std::uintptr_t{1});
  ++state.events;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t) {
  --state.events;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t stream) {
  const bool other = stream != nullptr && stream == state.of_another_device;
  return body(other ? cudaErrorInvalidResourceHandle : cudaSuccess);
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  *attributes = {};
  attributes->type = pointer == state.pinned ? cudaMemoryTypeHost : cudaMemoryTypeUnregistered;
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void** arguments, std::size_t, cudaStream_t) {
  state.launches.push_back(*static_cast<const int*>(arguments[0]));
  return body(state.error);
}
cudaError_t cudaGetLastError() { return state.last_error.exchange(cudaSuccess); }
}
