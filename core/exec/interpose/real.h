// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <span>
#include <utility>

// Makes the declared function the process's `symbol`. Its C++ name differs, so libc's header and its noexcept do not
// apply: a rank may be unwound from the function.
#define REHEARSE_INTERPOSES(symbol) __asm__(symbol) __attribute__((visibility("default"), used))

namespace rehearse::exec::interpose {

// Finds the function that ours replaces. `version` may be null. If no library has the function, ends the process with a
// message, because the caller cannot go on without it.
void* find_real(const char* name, const char* version) noexcept;

// A function of libc, libstdc++ or libgomp that ours replaces. Usable before constructors run: initialise it with
// constinit.
// If two threads look it up at the same time, both find the same.
template <class Function>
class Real {
 public:
  explicit constexpr Real(const char* name, const char* version = nullptr) : name_(name), version_(version) {}

  template <class... Arguments>
  auto operator()(Arguments... arguments) {
    void* function = function_.load(std::memory_order_relaxed);
    if (function == nullptr) [[unlikely]] {
      function = find_real(name_, version_);
      function_.store(function, std::memory_order_relaxed);
    }
    return reinterpret_cast<Function>(function)(std::forward<Arguments>(arguments)...);
  }

 private:
  const char* name_;
  const char* version_;
  std::atomic<void*> function_{nullptr};
};

struct Interposed {
  const char* name;
  const void* ours;
  const char* version = nullptr;  // the version of the real function; see find_real()
  // The function that exempt libraries call. Null: the real one. Set if the real one belongs to the C++ library and
  // would itself call one of our functions.
  const void* exempt = nullptr;
  // libc keeps this function only for old libraries; programs are no longer linked with it. The linker exports ours
  // only if one of the program's libraries refers to it; otherwise nothing calls it.
  bool of_old_libraries = false;
};

// The functions that each source file defines. Because require_installed() refers to these lists, the linker does not
// drop the source files from the archive.
std::span<const Interposed> condition_functions();
std::span<const Interposed> mutex_functions();
std::span<const Interposed> rwlock_functions();
std::span<const Interposed> once_functions();
std::span<const Interposed> guard_functions();
std::span<const Interposed> semaphore_functions();
std::span<const Interposed> sleep_functions();
std::span<const Interposed> clock_functions();
std::span<const Interposed> thread_functions();
std::span<const Interposed> thread_handle_functions();
std::span<const Interposed> blocking_io_functions();
std::span<const Interposed> syscall_functions();
std::span<const Interposed> child_functions();
std::span<const Interposed> exit_functions();
std::span<const Interposed> process_state_functions();
std::span<const Interposed> environment_functions();
std::span<const Interposed> barrier_functions();
std::span<const Interposed> file_functions();
std::span<const Interposed> write_functions();
std::span<const Interposed> close_functions();
std::span<const Interposed> path_functions();
std::span<const Interposed> stream_functions();
std::span<const Interposed> folder_functions();

std::span<const std::span<const Interposed>> all_functions();

// Whether the C++ library, compiled long before us, calls our pthread_cond_signal.
bool libstdcxx_calls_ours();

}  // namespace rehearse::exec::interpose
