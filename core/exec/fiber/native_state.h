// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cxxabi.h>
#include <cerrno>
#include <cstddef>
#include <mutex>

namespace rehearse::exec {

// The state that the C and C++ run-time libraries keep per thread and that each fiber needs for itself: the exceptions
// that are being handled, errno, and what std::call_once passes to pthread_once. If fibers shared this state, a fiber
// that has suspended in a catch block might rethrow another fiber's exception. A new fiber starts with zeros, as a new
// thread does.
class NativeState {
  // The C++ ABI's __cxa_eh_globals, which <cxxabi.h> leaves incomplete.
  struct ExceptionGlobals {
    void* caught = nullptr;
    unsigned int uncaught = 0;
  };
  // Usually zero; valid if has_more_.
  struct More {
    ExceptionGlobals exceptions;
    void* once_callable = nullptr;
    void (*once_call)() = nullptr;
  };

 public:
  // The size of the first part of a NativeState. A switch does not touch this part, unless the fiber suspends with an
  // exception in flight, in a catch block or inside std::call_once.
  static constexpr std::size_t kSeldomTouched = sizeof(More);

  // The addresses at which a thread keeps the state.
  struct Addresses {
    static Addresses of_this_thread() noexcept {
      return {reinterpret_cast<ExceptionGlobals*>(abi::__cxa_get_globals()), &errno};
    }
    ExceptionGlobals* exceptions = nullptr;
    int* error = nullptr;
  };

  // Saves the live state into `out` and makes `in` live. `live`: the addresses of the calling thread's state.
  static void exchange(const Addresses& live, NativeState& out, const NativeState& in) noexcept {
    out.error_ = *live.error;
    *live.error = in.error_;
    const bool any = live.exceptions->caught != nullptr || live.exceptions->uncaught != 0 ||
                     std::__once_callable != nullptr || std::__once_call != nullptr;
    out.has_more_ = any;
    if (any || in.has_more_) [[unlikely]]
      exchange_more(live, out, in);
  }

 private:
  static void exchange_more(const Addresses& live, NativeState& out, const NativeState& in) noexcept {
    out.more_ = {*live.exceptions, std::__once_callable, std::__once_call};
    const More next = in.has_more_ ? in.more_ : More{};
    *live.exceptions = next.exceptions;
    std::__once_callable = next.once_callable;
    std::__once_call = next.once_call;
  }

  More more_;
  int error_ = 0;
  bool has_more_ = false;
};

}  // namespace rehearse::exec
