// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/comm/errors.h>

#include <utility>

namespace rehearse {

// Leaves out LibTorch's backtrace, so that what() is exactly the message; reports find the line themselves.
CommError::CommError(std::string message, std::string group, std::uint64_t sequence, std::vector<int> ranks)
    : c10::DistBackendError(std::move(message), nullptr),
      group_(std::move(group)),
      sequence_(sequence),
      ranks_(std::move(ranks)) {}

}  // namespace rehearse
