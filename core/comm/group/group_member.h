// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <rehearse/exec/wait_queue.h>

#include "comm/work/rank_work.h"

namespace rehearse::comm {

class GroupState;

// One rank's state in a group besides its calls: its errors, its completion hook, and whether it still accepts calls.
// Made on demand. The group owns it.
class GroupMember {
 public:
  using Hook = std::function<void(std::shared_ptr<c10d::WorkInfo>)>;

  GroupMember(GroupState& group, int rank) : group_(group), rank_(rank) {}

  // Keeps only the first error.
  void note(c10d::ErrorType error) noexcept;
  c10d::ErrorType error() const noexcept { return error_; }

  // Fails the rank's operations in flight with CommError, and refuses later calls.
  void abort();

  // Waits for the rank's operations in flight, and refuses later calls.
  void shut_down();

  // Throws CommError after abort() or shut_down().
  void check_open() const;

  // Blocks until the rank's calls have ended and its hook has run for each call that succeeded. Throws TimeoutError if
  // a call exceeds its time limit.
  void wait_for_pending_works();

  bool has_hook() const noexcept { return hook_ != nullptr; }
  void set_hook(Hook hook) { hook_ = std::move(hook); }

  // Runs the hook, if set, on a helper fiber of the rank.
  void completed(const RankWork& work);

 private:
  GroupState& group_;
  const int rank_;
  c10d::ErrorType error_ = c10d::ErrorType::SUCCESS;
  const char* refusal_ = nullptr;
  Hook hook_;
  std::size_t hooks_to_run_ = 0;
  exec::WaitQueue hooks_done_;
};

}  // namespace rehearse::comm
