// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <span>
#include <utility>

// Makes the function that is declared with it the process's `symbol`. Its C++ name stays our own, so that libc's
// header and its noexcept do not apply: a rank may be unwound from here.
#define REHEARSE_INTERPOSES(symbol) __asm__(symbol) __attribute__((visibility("default"), used))

namespace rehearse::exec::interpose {

// Finds the function that ours stands before. `version` may be null. Ends the process with a message when there is
// none: libc lacks a function that it has always had, and the caller has nothing to fall back on.
void* find_real(const char* name, const char* version) noexcept;

// A function of libc (or libstdc++) that ours stands before. Usable before constructors run: initialise with
// constinit. Two threads may both look it up; they find the same.
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

// One function of ours.
struct Interposed {
  const char* name;
  const void* ours;
  const char* version = nullptr;  // of the real one; see find_real()
  // What exempt libraries get: one of the C++ library's own would come to us again. Null: the real one.
  const void* exempt = nullptr;
  // libc keeps it for libraries that were built long ago, and no program is linked with it any more. A linker leaves
  // ours out of what the process calls unless one of the program's libraries refers to it: then nothing calls it.
  bool of_old_libraries = false;
};

// What each source file defines. That the check asks for them also keeps a linker from leaving them in the archive.
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
std::span<const Interposed> exit_functions();
std::span<const Interposed> process_state_functions();
std::span<const Interposed> environment_functions();
std::span<const Interposed> barrier_functions();
std::span<const Interposed> file_functions();
std::span<const Interposed> write_functions();
std::span<const Interposed> close_functions();
std::span<const Interposed> path_functions();
std::span<const Interposed> stream_functions();

// All of these.
std::span<const std::span<const Interposed>> all_functions();

// Does the C++ library, compiled long before us, call our pthread_cond_signal?
bool libstdcxx_calls_ours();

}  // namespace rehearse::exec::interpose
