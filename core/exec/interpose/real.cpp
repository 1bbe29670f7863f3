// SPDX-License-Identifier: BSD-3-Clause
#include "real.h"

#include <cstdio>
#include <cstdlib>

#include <dlfcn.h>

namespace rehearse::exec::interpose {

void* find_real(const char* name, const char* version) noexcept {
  // libc keeps old condition variables under the same names, so ask for the version with which programs are linked.
  void* function = version != nullptr ? ::dlvsym(RTLD_NEXT, name, version) : nullptr;
  if (function == nullptr) function = ::dlsym(RTLD_NEXT, name);
  if (function != nullptr) return function;
  std::fprintf(stderr, "rehearse: no library of this process defines %s\n", name);
  std::abort();
}

}  // namespace rehearse::exec::interpose
