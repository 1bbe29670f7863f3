// SPDX-License-Identifier: BSD-3-Clause
#include "device_libraries.h"

#include <algorithm>
#include <array>
#include <climits>
#include <filesystem>
#include <string_view>
#include <system_error>

#include <dlfcn.h>

#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <fmt/format.h>
#include <rehearse/job/runner.h>
#include <rehearse_internal/exec/exempt_libraries.h>
#include <rehearse_internal/libtorch/version.h>

#include "nccl/nccl_library.h"

namespace rehearse::real {
namespace {

// The folder of the LibTorch that this process has loaded; empty if it is not a shared library.
std::filesystem::path libtorch_folder() {
  void* const c10 = ::dlopen("libc10.so", RTLD_NOW | RTLD_NOLOAD);
  char folder[PATH_MAX] = "";
  if (c10 != nullptr) ::dlinfo(c10, RTLD_DI_ORIGIN, folder);
  return folder;
}

// True for NVIDIA's driver, its run-time library, and its libraries with which LibTorch computes and communicates.
bool is_nvidias(std::string_view path) {
  constexpr std::array<std::string_view, 15> kNames = {
      "libcuda.so", "libcudart",   "libcublas", "libcudnn",     "libnccl",  "libnvidia",  "libcusparse", "libcufft",
      "libcurand",  "libcusolver", "libnvrtc",  "libnvJitLink", "libcupti", "libnvshmem", "libcufile"};
  const auto file = path.substr(path.rfind('/') + 1);
  return std::ranges::any_of(kNames, [&](auto name) { return file.starts_with(name); });
}

}  // namespace

void leave_device_libraries_alone() {
  try {
    exec::exempt_libraries(is_nvidias);
  } catch (const std::system_error& error) {
    throw RunnerUnavailable(
        fmt::format("a run on GPUs must redirect functions of loaded libraries, and that failed: {}", error.what()));
  }
}

void open_device_libraries() {
  const auto path = libtorch_folder() / "libtorch_cuda.so";
  if (::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr) return;
  const auto reason = loader_error();
  throw RunnerUnavailable(
      fmt::format("a run on GPUs needs LibTorch's CUDA libraries, and {} cannot be opened: {}. pip install torch=={} "
                  "with all that it depends on brings them; --with=gloo runs on the CPU",
                  path.string(), reason, libtorch::kVersion));
}

int device_count() {
  const auto* const guard = c10::impl::device_guard_impl_registry[static_cast<std::size_t>(c10::kCUDA)].load();
  return guard == nullptr ? 0 : guard->deviceCount();
}

std::string nccl_of_libtorch() {
  try {
    return name_of(*open_nccl());
  } catch (const LibraryError&) {
    return "NCCL";  // NCCL is a part of LibTorch's library
  }
}

}  // namespace rehearse::real
