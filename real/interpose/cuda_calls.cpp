// SPDX-License-Identifier: BSD-3-Clause
// Replacements for the functions of libcudart that wait for a device, because such a wait would block the thread that
// all ranks share. An executable's symbols come first, also for libraries that are opened later; this house's
// CMakeLists.txt says how these functions get into the executable's symbol table. In a rank of a run that lends its
// DeviceWaits, the replacement suspends only that rank. Anywhere else it passes the call to libcudart.
#include "cuda_calls.h"

#include <dlfcn.h>

#include <atomic>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <rehearse/exec/observer.h>
#include <rehearse/job/runner.h>
#include <rehearse_internal/exec/native_scope.h>
#include <rehearse_internal/exec/this_rank.h>
#include <rehearse_internal/exec/world_local.h>

#include "interpose/cuda_library.h"
#include "interpose/device_waits.h"
#include "interpose/launches.h"

// The library's link options name this symbol, so that the linker keeps this file.
extern "C" {
extern const int rehearse_cuda_calls;
const int rehearse_cuda_calls = 1;
}

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

// This and the next three functions replace calls of libcudart that wait for a device, so that only the calling rank
// waits. They return what libcudart's calls would return.
cudaError_t wait_for_stream(DeviceWaits& waits, const CudaLibrary& cuda, cudaStream_t stream, const char* call) {
  const cudaError_t now = answer(cuda, cuda.stream_query(stream));
  if (now != cudaErrorNotReady) return now;
  const Mark mark(cuda, stream);
  return wait_until_answered(waits, [&] { return mark.query(); }, call);
}

cudaError_t wait_for_event(DeviceWaits& waits, const CudaLibrary& cuda, cudaEvent_t event) {
  return wait_until_answered(waits, [&] { return answer(cuda, cuda.event_query(event)); }, "cudaEventSynchronize()");
}

// Waits for all streams of the calling thread's current device. No event marks that point: the streams of LibTorch and
// NCCL do not wait for the default stream, and the default stream does not wait for them. So the call runs on a thread
// of its own.
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

// True if an asynchronous copy waits for the earlier work in the stream. A copy from host to host waits, and a copy
// that writes host memory that CUDA does not know, or reads more than 64 KiB of such memory. A copy that reads fewer
// bytes does not wait, because CUDA fetches them during the call.
bool copy_waits(const CudaLibrary& cuda, void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  if (kind == cudaMemcpyHostToHost) return true;
  const bool reads_host = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDefault;
  const bool writes_host = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDefault;
  return (writes_host && is_pageable(cuda, to)) || (reads_host && bytes > kHandedOverMax && is_pageable(cuda, from));
}

// The thread's current device, as far as the functions in this file know it; -1: unknown.
constinit thread_local int t_cuda_device = -1;

// The error if no libcudart is found. Only programs that are linked with libcudart call these functions, so it should
// not occur.
constexpr cudaError_t kNoLibrary = cudaErrorSharedObjectSymbolNotFound;

DeviceWaits* waits_of_this_rank() noexcept {
  return exec::this_rank::is_fiber() ? exec::WorldLocal<DeviceWaits>::find() : nullptr;
}

// Calls `wait` with the run's DeviceWaits in a rank of a run on devices; elsewhere calls `pass`.
template <class Wait, class Pass>
cudaError_t in_rank_or_not(const Wait& wait, const Pass& pass) {
  const CudaLibrary* const cuda = CudaLibrary::find();
  if (cuda == nullptr) return kNoLibrary;
  DeviceWaits* const waits = waits_of_this_rank();
  return waits != nullptr ? wait(*waits, *cuda) : pass(*cuda);
}

// The driver waits by functions of libc, which could switch ranks in the middle of the driver. So run the call
// natively.
template <class Call>
cudaError_t natively(const Call& call) {
  const exec::NativeScope native;
  return call();
}

}  // namespace

void require_cuda_calls() {
  const std::pair<const char*, const void*> ours[] = {
      {"cudaStreamSynchronize", reinterpret_cast<const void*>(&::cudaStreamSynchronize)},
      {"cudaEventSynchronize", reinterpret_cast<const void*>(&::cudaEventSynchronize)},
      {"cudaDeviceSynchronize", reinterpret_cast<const void*>(&::cudaDeviceSynchronize)},
      {"cudaMemcpy", reinterpret_cast<const void*>(&::cudaMemcpy)},
      {"cudaMemcpyAsync", reinterpret_cast<const void*>(&::cudaMemcpyAsync)},
      {"cudaSetDevice", reinterpret_cast<const void*>(&::cudaSetDevice)},
      {"__cudaLaunchKernel", reinterpret_cast<const void*>(&::__cudaLaunchKernel)},
  };
  for (const auto& [name, function] : ours) {
    if (::dlsym(RTLD_DEFAULT, name) == function) continue;
    throw RunnerUnavailable(fmt::format(
        "this executable does not export Rehearse's {}, so a rank that waits for its GPU would stop all ranks of the "
        "process. Link rehearse::real into the executable itself, by CMake (which adds what the linker has to be told) "
        "or with -Wl,--export-dynamic-symbol={}",
        name, name));
  }
}

int exchange_cuda_device(int device) noexcept {
  const CudaLibrary* const cuda = CudaLibrary::find();
  if (cuda == nullptr) return -1;
  if (t_cuda_device < 0 && cuda->get_device(&t_cuda_device) != cudaSuccess) t_cuda_device = -1;
  const int before = t_cuda_device;
  if (before != device && cuda->set_device(device) == cudaSuccess) t_cuda_device = device;
  return before;
}

}  // namespace rehearse::real

extern "C" {

using rehearse::real::CudaLibrary;
using rehearse::real::DeviceWaits;

#define REHEARSE_EXPORTED __attribute__((visibility("default")))

REHEARSE_EXPORTED cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return rehearse::real::in_rank_or_not(
      [&](DeviceWaits& waits, const CudaLibrary& cuda) {
        return rehearse::real::wait_for_stream(waits, cuda, stream, "cudaStreamSynchronize()");
      },
      [&](const CudaLibrary& cuda) { return cuda.stream_synchronize(stream); });
}

REHEARSE_EXPORTED cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return rehearse::real::in_rank_or_not(
      [&](DeviceWaits& waits, const CudaLibrary& cuda) { return rehearse::real::wait_for_event(waits, cuda, event); },
      [&](const CudaLibrary& cuda) { return cuda.event_synchronize(event); });
}

REHEARSE_EXPORTED cudaError_t cudaDeviceSynchronize() {
  return rehearse::real::in_rank_or_not(
      [](DeviceWaits& waits, const CudaLibrary& cuda) { return rehearse::real::wait_for_device(waits, cuda); },
      [](const CudaLibrary& cuda) { return cuda.device_synchronize(); });
}

// Unless it copies from host to host, first waits for the default stream of the current device.
REHEARSE_EXPORTED cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return rehearse::real::in_rank_or_not(
      [&](DeviceWaits& waits, const CudaLibrary& cuda) {
        const auto before = kind == cudaMemcpyHostToHost
                                ? cudaSuccess
                                : rehearse::real::wait_for_stream(waits, cuda, nullptr, "cudaMemcpy()");
        if (before != cudaSuccess) return before;
        return rehearse::real::natively([&] { return cuda.memcpy(to, from, bytes, kind); });
      },
      [&](const CudaLibrary& cuda) { return cuda.memcpy(to, from, bytes, kind); });
}

REHEARSE_EXPORTED cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                                              cudaStream_t stream) {
  return rehearse::real::in_rank_or_not(
      [&](DeviceWaits& waits, const CudaLibrary& cuda) {
        if (!rehearse::real::copy_waits(cuda, to, from, bytes, kind))
          return cuda.memcpy_async(to, from, bytes, kind, stream);
        const auto before = rehearse::real::wait_for_stream(waits, cuda, stream, "cudaMemcpyAsync() with host memory");
        if (before != cudaSuccess) return before;
        return rehearse::real::natively([&] { return cuda.memcpy_async(to, from, bytes, kind, stream); });
      },
      [&](const CudaLibrary& cuda) { return cuda.memcpy_async(to, from, bytes, kind, stream); });
}

REHEARSE_EXPORTED cudaError_t cudaSetDevice(int device) {
  const CudaLibrary* const cuda = CudaLibrary::find();
  if (cuda == nullptr) return rehearse::real::kNoLibrary;
  const cudaError_t result = cuda->set_device(device);
  if (result == cudaSuccess) rehearse::real::t_cuda_device = device;
  return result;
}
}
