// SPDX-License-Identifier: BSD-3-Clause
#include "waits_of_cuda.h"

#include <atomic>
#include <memory>
#include <system_error>
#include <thread>

#include <rehearse/exec/observer.h>
#include <rehearse_internal/exec/native_scope.h>

namespace rehearse::real {
namespace {

// Copies of at most this size from pageable memory return at once.
constexpr std::size_t kHandedOverMax = std::size_t{64} << 10;

// The answer "not ready" of a query also becomes the thread's last error, and would count as the error of the next
// kernel. So clear that error.
cudaError_t answer(const CudaLibrary& cuda, cudaError_t result) {
  if (result == cudaErrorNotReady) cuda.get_last_error();
  return result;
}

// A point in a stream. If no event can mark it (the stream belongs to another device), query() asks whether the stream
// is empty.
class Mark {
 public:
  Mark(const CudaLibrary& cuda, cudaStream_t stream) : cuda_(cuda), stream_(stream) {
    if (cuda_.event_create(&event_, cudaEventDisableTiming) != cudaSuccess) event_ = nullptr;
    if (event_ == nullptr || cuda_.event_record(event_, stream_) == cudaSuccess) return;
    cuda_.get_last_error();
    destroy();
  }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;
  ~Mark() { destroy(); }

  cudaError_t query() const {
    return answer(cuda_, event_ != nullptr ? cuda_.event_query(event_) : cuda_.stream_query(stream_));
  }

 private:
  void destroy() {
    if (event_ != nullptr) cuda_.event_destroy(event_);
    event_ = nullptr;
  }

  const CudaLibrary& cuda_;
  const cudaStream_t stream_;
  cudaEvent_t event_ = nullptr;
};

template <class Query>
cudaError_t wait_until_answered(DeviceWaits& waits, const Query& query, const char* call) {
  cudaError_t result = cudaErrorNotReady;
  const auto is_answered = [&] { return (result = query()) != cudaErrorNotReady; };
  if (!is_answered()) waits.wait(is_answered, exec::FixedObserver(call));
  return result;
}

bool is_pageable(const CudaLibrary& cuda, const void* memory) {
  cudaPointerAttributes attributes{};
  if (cuda.pointer_attributes(&attributes, memory) == cudaSuccess) return attributes.type == cudaMemoryTypeUnregistered;
  cuda.get_last_error();
  return false;
}

// A call on a thread of its own. Both sides keep this object, because the rank may be gone before the call returns.
struct CallOfThread {
  std::atomic<bool> over{false};
  cudaError_t result = cudaSuccess;
};

}  // namespace

cudaError_t wait_for_stream(DeviceWaits& waits, const CudaLibrary& cuda, cudaStream_t stream, const char* call) {
  const cudaError_t now = answer(cuda, cuda.stream_query(stream));
  if (now != cudaErrorNotReady) return now;
  const Mark mark(cuda, stream);
  return wait_until_answered(waits, [&] { return mark.query(); }, call);
}

cudaError_t wait_for_event(DeviceWaits& waits, const CudaLibrary& cuda, cudaEvent_t event) {
  return wait_until_answered(waits, [&] { return answer(cuda, cuda.event_query(event)); }, "cudaEventSynchronize()");
}

cudaError_t wait_for_device(DeviceWaits& waits, const CudaLibrary& cuda) {
  int device = 0;
  if (const auto error = cuda.get_device(&device)) return error;
  const auto call = std::make_shared<CallOfThread>();
  try {
    const exec::NativeScope real_thread;
    std::thread([call, &cuda, device] {
      call->result = cuda.set_device(device);
      if (call->result == cudaSuccess) call->result = cuda.device_synchronize();
      call->over.store(true, std::memory_order_release);
    }).detach();
  } catch (const std::system_error&) {
    const exec::NativeScope blocks;
    return cuda.device_synchronize();
  }
  const auto is_over = [&] { return call->over.load(std::memory_order_acquire); };
  waits.wait(is_over, exec::FixedObserver("cudaDeviceSynchronize()"));
  return call->result;
}

bool copy_waits(const CudaLibrary& cuda, void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  if (kind == cudaMemcpyHostToHost) return true;
  const bool reads_host = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDefault;
  const bool writes_host = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDefault;
  return (writes_host && is_pageable(cuda, to)) || (reads_host && bytes > kHandedOverMax && is_pageable(cuda, from));
}

}  // namespace rehearse::real
