// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <c10/util/Exception.h>

namespace rehearse {

// What all communication errors have in common; by itself: the operation was aborted, or its world has ended. Catchable
// as c10::DistBackendError, like the errors of c10d's own back ends. The operation has not taken place; its tensors are
// unchanged unless said otherwise.
class CommError : public c10::DistBackendError {
 public:
  CommError(std::string message, std::string group, std::uint64_t sequence, std::vector<int> ranks);

  const std::string& group() const noexcept { return group_; }
  std::uint64_t sequence() const noexcept { return sequence_; }
  // The ranks (of the world) at the root of the error: the missing ones, or those that disagree.
  const std::vector<int>& ranks() const noexcept { return ranks_; }

 private:
  std::string group_;
  std::uint64_t sequence_;
  std::vector<int> ranks_;
};

// Two ranks called different things at the same place in their group's order. Ends the world.
class MismatchError : public CommError {
 public:
  using CommError::CommError;
};

// An operation was not complete within its timeout (virtual time).
class TimeoutError : public CommError {
 public:
  using CommError::CommError;
};

}  // namespace rehearse
