// SPDX-License-Identifier: BSD-3-Clause
#include "cuda_library.h"

#include <atomic>

#include <dlfcn.h>

namespace rehearse::real {
namespace {

// Searches the libraries behind the executable, in the loader's order. libcudart is among them if LibTorch's
// libtorch_cpu links it, or if somebody has opened libtorch_cuda with RTLD_GLOBAL.
template <class Function>
bool find_function(Function& function, const char* name) noexcept {
  function = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
  return function != nullptr;
}

bool fill(CudaLibrary& cuda) noexcept {
  find_function(cuda.launch_kernel, "__cudaLaunchKernel");
  return find_function(cuda.stream_synchronize, "cudaStreamSynchronize") &&
         find_function(cuda.event_synchronize, "cudaEventSynchronize") &&
         find_function(cuda.device_synchronize, "cudaDeviceSynchronize") && find_function(cuda.memcpy, "cudaMemcpy") &&
         find_function(cuda.memcpy_async, "cudaMemcpyAsync") && find_function(cuda.set_device, "cudaSetDevice") &&
         find_function(cuda.get_device, "cudaGetDevice") && find_function(cuda.stream_query, "cudaStreamQuery") &&
         find_function(cuda.event_create, "cudaEventCreateWithFlags") &&
         find_function(cuda.event_record, "cudaEventRecord") && find_function(cuda.event_query, "cudaEventQuery") &&
         find_function(cuda.event_destroy, "cudaEventDestroy") &&
         find_function(cuda.pointer_attributes, "cudaPointerGetAttributes") &&
         find_function(cuda.get_last_error, "cudaGetLastError");
}

}  // namespace

const CudaLibrary* CudaLibrary::find() noexcept {
  // Two threads may look at the same time; they find the same functions.
  static std::atomic<const CudaLibrary*> known{nullptr};
  if (const auto* const found = known.load(std::memory_order_acquire)) return found;
  CudaLibrary looked{};
  if (!fill(looked)) return nullptr;
  static const CudaLibrary cuda = looked;
  known.store(&cuda, std::memory_order_release);
  return &cuda;
}

}  // namespace rehearse::real
