// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <stdexcept>
#include <string>

#include <dlfcn.h>

#include <fmt/format.h>

#include "interpose.h"
#include "real.h"

namespace rehearse::exec::interpose {
namespace {

std::string owner_of(const void* function) {
  Dl_info info{};
  if (function == nullptr || ::dladdr(function, &info) == 0 || info.dli_fname == nullptr) return "nobody's";
  return info.dli_fname;
}

void check(const Interposed& function) {
  const void* const found = ::dlsym(RTLD_DEFAULT, function.name);
  if (found == function.ours || function.of_old_libraries) return;
  throw std::runtime_error(fmt::format(
      "the process calls {} of {} and not Rehearse's (which is in {}): a rank that blocks in it would block all ranks. "
      "Link rehearse::core (or rehearse::exec) into the executable itself, before any library that defines the "
      "function; a library that is loaded with dlopen() comes too late",
      function.name, owner_of(found), owner_of(function.ours)));
}

bool check_all() {
  for (const auto functions : all_functions()) {
    for (const auto& function : functions) check(function);
  }
  if (!libstdcxx_calls_ours()) {
    throw std::runtime_error(
        "the C++ library of this process calls libc's pthread_cond_signal although Rehearse's comes first: it was "
        "loaded with RTLD_DEEPBIND or linked with libc's symbols bound. Load it the usual way");
  }
  return true;
}

}  // namespace

std::span<const std::span<const Interposed>> all_functions() {
  static const std::array all = {
      condition_functions(),   mutex_functions(),   rwlock_functions(), once_functions(),   guard_functions(),
      semaphore_functions(),   sleep_functions(),   clock_functions(),  thread_functions(), thread_handle_functions(),
      blocking_io_functions(), syscall_functions(), child_functions(),  exit_functions(),   process_state_functions(),
      environment_functions(), barrier_functions(), file_functions(),   close_functions(),  path_functions(),
      write_functions(),       stream_functions(),  folder_functions()};
  return all;
}

void require_installed() {
  static const bool installed = check_all();
  static_cast<void>(installed);
}

}  // namespace rehearse::exec::interpose
