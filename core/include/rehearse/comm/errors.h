// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <c10/util/Exception.h>

namespace rehearse {

// The base of all communication errors. An object of this class itself means, for example, that the operation was
// aborted or that the operation's world has ended. Can be caught as c10::DistBackendError, like the errors of c10d's
// own back ends. In a simulation, an operation that ends with this error has not written its tensors. In a real run,
// the tensors may be half written.
class CommError : public c10::DistBackendError {
 public:
  CommError(std::string message, std::string group, std::uint64_t sequence, std::vector<int> ranks);

  const std::string& group() const noexcept { return group_; }
  std::uint64_t sequence() const noexcept { return sequence_; }
  // The ranks of the world that caused the error, for example those that are missing or that disagree.
  const std::vector<int>& ranks() const noexcept { return ranks_; }

 private:
  std::string group_;
  std::uint64_t sequence_;
  std::vector<int> ranks_;
};

// Two ranks made different calls at the same position in their group's order. Ends the world.
class MismatchError : public CommError {
 public:
  using CommError::CommError;
};

// An operation did not complete within its timeout. In a simulation, timeouts are in virtual time.
class TimeoutError : public CommError {
 public:
  using CommError::CommError;
};

}  // namespace rehearse
