// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <exception>

namespace rehearse::real {

// The state of a rank's calls in the back ends below Rehearse's: c10d's own gloo and NCCL. Thread safe.
class WorkBelow {
 public:
  // begin(): a call was passed on. end(): it has ended.
  void begin() noexcept { ++under_way_; }
  void end() noexcept { --under_way_; }
  bool any_under_way() const noexcept { return under_way_ > 0; }

  // Throws the error of a call to a back end below, and remembers that such a call has failed.
  [[noreturn]] void throw_failure(const std::exception_ptr& error) {
    has_failed_ = true;
    std::rethrow_exception(error);
  }
  bool has_failed() const noexcept { return has_failed_; }

 private:
  std::atomic<int> under_way_{0};
  std::atomic<bool> has_failed_{false};
};

}  // namespace rehearse::real
