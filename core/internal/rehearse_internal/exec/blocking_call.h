// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <stdexcept>

namespace rehearse {

// Thrown in a rank that asks the kernel to block the thread (poll(), select(), epoll_wait() with nothing ready): all
// ranks share that thread, and no other rank could ever make the call return. The rank has failed with it; nothing
// else has happened.
class BlockingCallError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

}  // namespace rehearse
