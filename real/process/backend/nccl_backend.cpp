// SPDX-License-Identifier: BSD-3-Clause
#include "nccl_backend.h"

#include <dlfcn.h>

#include <cstddef>
#include <new>
#include <utility>

#include <ATen/Context.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>
#include <rehearse/job/runner.h>
#include <rehearse_internal/libtorch/version.h>

#if REHEARSE_HAS_NCCL
#include "runner/device_libraries.h"
#endif

namespace rehearse::real {
namespace {

using BackendPtr = c10::intrusive_ptr<c10d::Backend>;
using OptionsPtr = c10::intrusive_ptr<c10d::Backend::Options>;
using StorePtr = c10::intrusive_ptr<c10d::Store>;

// The constructors ProcessGroupNCCL(intrusive_ptr<Store>, int, int, intrusive_ptr<Options>) and Options(bool). In
// machine code all intrusive_ptrs are the same, and objects of the two classes begin with their bases, c10d::Backend
// and c10d::Backend::Options. So the types below can name the bases.
constexpr const char* kMakeGroup =
    "_ZN4c10d16ProcessGroupNCCLC1EN3c1013intrusive_ptrINS_5StoreENS1_6detail34intrusive_target_default_null_typeIS3_"
    "EEEEiiNS2_INS0_7OptionsENS5_IS8_EEEE";
constexpr const char* kMakeOptions = "_ZN4c10d16ProcessGroupNCCL7OptionsC1Eb";
using MakeGroup = void (*)(void* self, StorePtr store, int rank, int size, OptionsPtr options);
using MakeOptions = void (*)(void* self, bool is_high_priority_stream);

// Memory for either object, more than it needs. The sizes depend on the library's NCCL (1,112 and 248 bytes with 2.28).
constexpr std::size_t kRoom = 16'384;

template <class Function>
Function found(const char* name) {
  void* const address = ::dlsym(RTLD_DEFAULT, name);
  if (address != nullptr) return reinterpret_cast<Function>(address);
  throw RunnerUnavailable(
      fmt::format("LibTorch's CUDA library has no ProcessGroupNCCL as the official LibTorch {} has it: one process per "
                  "GPU needs that one, built with NCCL",
                  libtorch::kVersion));
}

// Constructs an object in memory from operator new. Its last reference deletes it as usual, because its destructor is
// virtual.
template <class T, class Make, class... Arguments>
c10::intrusive_ptr<T> made(Make make, Arguments&&... arguments) {
  void* const memory = ::operator new(kRoom);
  try {
    make(memory, std::forward<Arguments>(arguments)...);
  } catch (...) {
    ::operator delete(memory);
    throw;
  }
  return c10::intrusive_ptr<T>::unsafe_steal_from_new(static_cast<T*>(memory));
}

int gpus() {
#if REHEARSE_HAS_NCCL
  open_device_libraries();
  return device_count();
#else
  throw RunnerUnavailable(
      "this executable cannot run ranks on GPUs: it was built without the headers of CUDA and NCCL (-DREHEARSE_REAL=ON "
      "says what is missing); --with=gloo runs a process for each rank, on the CPU");
#endif
}

}  // namespace

bool has_gpu(const LaunchedProcess& process) {
  try {
    return process.local_rank < gpus();
  } catch (const RunnerUnavailable&) {
    return false;
  }
}

at::Device own_gpu(const LaunchedProcess& process) {
  const int count = gpus();
  if (count == 0) {
    throw RunnerUnavailable(
        "there is no GPU that this process may use (no driver, or CUDA_VISIBLE_DEVICES is empty); --with=gloo runs a "
        "process for each rank, on the CPU");
  }
  if (process.local_rank >= count) {
    throw RunnerUnavailable(
        fmt::format("rank {} is process {} of its host, counted from 0, and there {} {} GPU{} for it: NCCL carries one "
                    "process per GPU; --with=gloo runs any number, on the CPU",
                    process.rank, process.local_rank, count == 1 ? "is" : "are", count, count == 1 ? "" : "s"));
  }
  at::globalContext().lazyInitDevice(c10::kCUDA);
  const at::Device device(c10::kCUDA, static_cast<c10::DeviceIndex>(process.local_rank));
  c10::impl::VirtualGuardImpl(c10::kCUDA).setDevice(device);
  return device;
}

BackendPtr make_nccl(const StorePtr& store, int rank, int size, std::chrono::milliseconds timeout) {
  static const auto make_group = found<MakeGroup>(kMakeGroup);
  static const auto make_options = found<MakeOptions>(kMakeOptions);
  auto options = made<c10d::Backend::Options>(make_options, false);
  if (timeout.count() > 0) options->timeout = timeout;
  return made<c10d::Backend>(make_group, store, rank, size, std::move(options));
}

std::string nccl_below() {
#if REHEARSE_HAS_NCCL
  return nccl_of_libtorch();
#else
  return "NCCL";
#endif
}

}  // namespace rehearse::real
