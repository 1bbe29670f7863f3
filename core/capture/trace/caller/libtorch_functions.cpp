// SPDX-License-Identifier: BSD-3-Clause
#include "capture/trace/caller/call_stack.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>

#include <ATen/Version.h>

namespace rehearse::capture {
namespace {

struct Library {
  std::uintptr_t base = 0;
  std::uintptr_t end = 0;
};

int measure(dl_phdr_info* info, std::size_t, void* data) {
  Library& library = *static_cast<Library*>(data);
  if (info->dlpi_addr != library.base) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    if (segment.p_type == PT_LOAD) {
      library.end = std::max<std::uintptr_t>(library.end, library.base + segment.p_vaddr + segment.p_memsz);
    }
  }
  return 1;
}

Library find_libtorch() {
  Library library;
  Dl_info info{};
  if (::dladdr(reinterpret_cast<void*>(&at::show_config), &info) == 0) return library;
  library.base = reinterpret_cast<std::uintptr_t>(info.dli_fbase);
  ::dl_iterate_phdr(&measure, &library);
  return library;
}

bool is_in_libtorch(const void* address) {
  static const Library library = find_libtorch();
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  return library.base <= at && at < library.end;
}

}  // namespace

std::string_view libtorch_function_at(const void* address) {
  if (!is_in_libtorch(address)) return {};
  static std::mutex mutex;
  static std::unordered_map<const void*, std::string> names;  // has at most one entry for each call site in LibTorch
  const std::lock_guard lock(mutex);
  const auto [name, is_new] = names.try_emplace(address);
  Dl_info info{};
  if (is_new && ::dladdr(address, &info) != 0 && info.dli_sname != nullptr) name->second = info.dli_sname;
  return name->second;
}

}  // namespace rehearse::capture
