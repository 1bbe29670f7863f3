// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <stdexcept>

namespace rehearse {

// Thrown in a rank that asks the kernel to block the thread: by poll(), select(), epoll_wait() or their siblings with
// nothing ready, or by a futex call for locks with priority inheritance. All ranks share that thread, so no other rank
// could ever make the call return.
class BlockingCallError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

}  // namespace rehearse
