// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace rehearse::exec {

class Fiber;
struct NativePlace;

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

 protected:
  // For any thread that runs code of `fiber`'s rank; null: changes nothing. `place`: a constant.
  NativeScope(Fiber* fiber, const NativePlace& place) noexcept;

 private:
  Fiber* const current_before_;
  Fiber* const native_before_;
  const NativePlace* const place_before_;
};

}  // namespace rehearse::exec
