// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cerrno>
#include <cxxabi.h>
#include <mutex>

namespace rehearse::exec {

// What the C and C++ run-time libraries keep for a thread and a fiber needs for itself: exceptions being handled
// (without them a fiber that suspends inside a catch block rethrows another fiber's exception), errno, and what
// std::call_once hands to pthread_once. A new fiber starts with all of it zero, as a new thread does.
class NativeState {
 public:
  // Saves the live state into `out` and makes `in` live.
  static void exchange(NativeState& out, const NativeState& in) noexcept {
    auto& live = *reinterpret_cast<ExceptionGlobals*>(abi::__cxa_get_globals());
    out.exceptions_ = live;
    live = in.exceptions_;
    out.error_ = errno;
    errno = in.error_;
    out.once_callable_ = std::__once_callable;
    std::__once_callable = in.once_callable_;
    out.once_call_ = std::__once_call;
    std::__once_call = in.once_call_;
  }

 private:
  // The C++ ABI's __cxa_eh_globals, which <cxxabi.h> leaves incomplete.
  struct ExceptionGlobals {
    void* caught = nullptr;
    unsigned int uncaught = 0;
  };

  ExceptionGlobals exceptions_;
  int error_ = 0;
  void* once_callable_ = nullptr;
  void (*once_call_)() = nullptr;
};

}  // namespace rehearse::exec
