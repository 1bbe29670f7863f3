// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace rehearse::exec::interpose {

// While it lives, futex waits of this thread really block, because a library's own code waits for another thread.
class PassThrough {
 public:
  PassThrough() noexcept;
  PassThrough(const PassThrough&) = delete;
  PassThrough& operator=(const PassThrough&) = delete;
  ~PassThrough();
};

// Wakes every thread that waits in the kernel on this word.
void wake_threads(const void* word) noexcept;

}  // namespace rehearse::exec::interpose
