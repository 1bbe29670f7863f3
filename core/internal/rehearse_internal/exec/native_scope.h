// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace rehearse::exec {

class Fiber;
struct NativeCode;

// While it lives, the calling rank's libc calls are libc's own, the thread cannot switch to another rank, and threads
// that the rank starts are real ones. For calls into libraries that wait for their own threads or devices (NCCL, a
// driver). A call that would have to switch throws std::logic_error. Clocks still show the world's time. The scope has
// no effect outside of ranks, or inside another scope.
class NativeScope {
 public:
  NativeScope() noexcept;
  NativeScope(const NativeScope&) = delete;
  NativeScope& operator=(const NativeScope&) = delete;
  ~NativeScope();

 protected:
  // For any thread that runs code of `fiber`'s rank. Has no effect if `fiber` is null. `code` must live as long as the
  // process.
  NativeScope(Fiber* fiber, const NativeCode& code) noexcept;

 private:
  Fiber* const current_before_;
  Fiber* const native_before_;
  const NativeCode* const code_before_;
};

}  // namespace rehearse::exec
