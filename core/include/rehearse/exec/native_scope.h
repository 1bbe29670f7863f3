// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace rehearse::exec {

class Fiber;

// While it lives, the calling rank's libc calls are libc's own, the thread cannot switch to another rank, and threads
// that it starts are real ones: for calls into libraries that wait for threads or devices of their own (NCCL, a
// driver). What would have to switch in it throws std::logic_error. Clocks still tell the world's time. Outside of
// ranks, and inside of another one, it changes nothing.
class NativeScope {
 public:
  NativeScope() noexcept;
  NativeScope(const NativeScope&) = delete;
  NativeScope& operator=(const NativeScope&) = delete;
  ~NativeScope();

 private:
  Fiber* const fiber_;
};

}  // namespace rehearse::exec
