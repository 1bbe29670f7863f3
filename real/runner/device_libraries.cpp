// SPDX-License-Identifier: BSD-3-Clause
#include "device_libraries.h"

#include <filesystem>

#include <dlfcn.h>

#include <c10/core/TensorImpl.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <fmt/format.h>
#include <rehearse/job/runner.h>

namespace rehearse::real {
namespace {

// The folder of the LibTorch that this process has loaded.
std::filesystem::path libtorch_folder() {
  Dl_info library{};
  const auto* const of_c10 = reinterpret_cast<const void*>(&c10::impl::device_guard_impl_registry);
  if (::dladdr(of_c10, &library) == 0 || library.dli_fname == nullptr) return {};
  return std::filesystem::path(library.dli_fname).parent_path();
}

}  // namespace

void open_device_libraries() {
  const auto path = libtorch_folder() / "libtorch_cuda.so";
  if (::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr) return;
  const char* const reason = ::dlerror();
  throw RunnerUnavailable(fmt::format(
      "a run on GPUs needs LibTorch's CUDA libraries, and {} cannot be opened: {}. pip install torch==2.11.0 "
      "with all that it depends on brings them; --with=gloo runs on the CPU",
      path.string(), reason != nullptr ? reason : "for no stated reason"));
}

int device_count() {
  const auto* const guard = c10::impl::device_guard_impl_registry[static_cast<std::size_t>(c10::kCUDA)].load();
  return guard == nullptr ? 0 : guard->deviceCount();
}

}  // namespace rehearse::real
