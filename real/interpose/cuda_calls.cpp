// SPDX-License-Identifier: BSD-3-Clause
// Replacements for the functions of libcudart that wait for a device, because such a wait would block the thread that
// all ranks share. An executable's symbols come first, also for libraries that are opened later; this house's
// CMakeLists.txt says how these functions get into the executable's symbol table. In a rank of a run that lends its
// DeviceWaits, the replacement suspends only that rank. Anywhere else it passes the call to libcudart.
#include "cuda_calls.h"

#include <utility>

#include <dlfcn.h>

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <rehearse/job/runner.h>
#include <rehearse_internal/exec/native_scope.h>
#include <rehearse_internal/exec/this_rank.h>
#include <rehearse_internal/exec/world_local.h>

#include "interpose/cuda_library.h"
#include "interpose/device_waits.h"
#include "interpose/launches.h"
#include "interpose/waits_of_cuda.h"

// The library's link options name this symbol, so that the linker keeps this file.
extern "C" {
extern const int rehearse_cuda_calls;
const int rehearse_cuda_calls = 1;
}

namespace rehearse::real {
namespace {

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
